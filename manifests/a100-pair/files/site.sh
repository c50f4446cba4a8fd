# Site-wide shell settings, managed from Git by reconcile.
export SITE=a100-pair
umask 0022
