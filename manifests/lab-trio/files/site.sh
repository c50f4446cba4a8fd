# Site-wide shell settings, managed from Git by reconcile.
export SITE=lab-trio
umask 0022
