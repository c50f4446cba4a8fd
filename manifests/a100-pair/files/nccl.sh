# For programs started by hand; jobs get these from their launcher.
export NCCL_IB_HCA==mlx5_0:1
export NCCL_DEBUG=WARN
