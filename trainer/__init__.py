"""Fine-tuning on any number of GPUs: `torchrun -m trainer.train run.yaml`. Knows nothing of Git, SSH or the controller."""
