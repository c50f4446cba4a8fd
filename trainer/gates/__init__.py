"""Programs that prove a stage where it needs torch: each runnable by hand, each with one JSON result on stdout.

    python -m trainer.gates.one_gpu                                # stage torch
    torchrun --nproc-per-node gpu -m trainer.gates.ddp_node        # and nccl_node, frameworks, lora_node
    torchrun --nnodes 2 ... -m trainer.gates.nccl_cluster          # and lora_cluster: on every node

`python -m trainer.gates STAGE` is the same by the name of the stage. Everything that libraries print goes to stderr. Exit status:
0 passed, 1 failed, 2 a wrong call. With `--cpu` they run on gloo and CPUs, and the result says STAND-IN.
"""
