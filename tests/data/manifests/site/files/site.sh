umask 0022
