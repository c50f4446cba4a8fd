"""Ways to a node: ssh, local, replay. All speak the node program's protocol; none decides anything."""
