"""GRUB's files on a node, as EL9 and Debian write them: nothing starts from them, a node's programs read them. Pure."""

_BLS = """set timeout=5
set default="${saved_entry}"
insmod blscfg
blscfg
"""
_MENU = """set default="0"
menuentry 'Debian GNU/Linux' --class debian --id 'gnulinux-simple' {
	linux	/boot/vmlinuz-KERNEL root=/dev/sda1 ro quiet
}
"""
_ENTRY = """title CentOS Stream (KERNEL) 9
version KERNEL
linux /boot/vmlinuz-KERNEL
options root=/dev/sda1 ro
grub_users $grub_users
"""
_MACHINE = "0123456789abcdef0123456789abcdef"


def files(kernel: str, *, blscfg: bool) -> dict[str, str]:
    """By path below the node's root; `blscfg`: entries of the Boot Loader Specification, as EL9 has them."""
    if not blscfg:
        return {"boot/grub/grub.cfg": _MENU.replace("KERNEL", kernel)}
    saved = f"# GRUB Environment Block\nsaved_entry={_MACHINE}-{kernel}\n"
    return {
        "boot/grub2/grub.cfg": _BLS,
        "boot/grub2/grubenv": saved.ljust(1024, "#"),
        f"boot/loader/entries/{_MACHINE}-{kernel}.conf": _ENTRY.replace("KERNEL", kernel),
    }
