"""What this project does, shown: on three real nodes (`make demo`) and from recordings (`make demo-offline`)."""
