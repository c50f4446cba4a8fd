"""The right to write on this node: one holder at a time, a token that only rises, an age that no clock change can fake."""

from typing import Any, Dict, Optional

from reconciler.node import state, units


def _file() -> str:
    return state.path("lease.json")


def current() -> Optional[Dict[str, Any]]:
    """The lease as it stands, with `live` and `age` (seconds) worked out; None where there never was one."""
    lease = state.read_record(_file())
    if lease is None:
        return None
    missing = {"token", "holder", "plan", "ttl", "renewed", "boot_id"} - set(lease)
    if missing:
        raise state.Refused("DamagedRecord", path=_file(), missing=sorted(missing))
    same_boot = lease["boot_id"] == state.boot_id()
    age = state.boottime() - lease["renewed"] if same_boot else None
    live = bool(lease["holder"]) and age is not None and age < lease["ttl"]
    return dict(lease, age=age, live=live)


def grant(holder: str, plan: str, ttl: float) -> Dict[str, Any]:
    """Give the lease to `holder` under a new token.

    Refused with `LeaseHeld` while another holder's is live, and with `StepActive` while a step still runs: whoever comes
    next has to take over that step's outcome first. The same holder gets a new token, so that its older self cannot write.
    """
    with state.locked():
        lease = current()
        if lease and lease["live"] and lease["holder"] != holder:
            raise state.Refused("LeaseHeld", holder=lease["holder"], age=lease["age"], ttl=lease["ttl"], plan=lease["plan"])
        active = [step for step in units.active() if _at_work(step["token"], step["step"])]
        if active:
            raise state.Refused("StepActive", steps=active)
        token = (lease["token"] if lease else 0) + 1
        _write(token, holder, plan, ttl)
        return {"token": token}


def _at_work(token: int, number: int) -> bool:
    """A runner whose record says how it ended has nothing left to write, only to exit: its unit is active a moment longer."""
    record = state.read_record(state.path("steps", "%d-%d.json" % (token, number)))
    return record is None or record.get("state") not in ("done", "failed")


def _write(token: int, holder: str, plan: str, ttl: float) -> None:
    state.write_record(
        _file(),
        {
            "token": token,
            "holder": holder,
            "plan": plan,
            "ttl": ttl,
            "renewed": state.boottime(),
            "boot_id": state.boot_id(),
        },
    )


def renew(token: int) -> Dict[str, Any]:
    """Make the lease young again, also one that ran out, as long as nobody else was given one since."""
    with state.locked():
        lease = _own(token)
        _write(token, lease["holder"], lease["plan"], lease["ttl"])
        return {"token": token}


def release(token: int) -> Dict[str, Any]:
    """End the lease; the token stays, so that the next one is higher."""
    with state.locked():
        lease = _own(token)
        _write(token, "", lease["plan"], lease["ttl"])
        return {}


def _own(token: int) -> Dict[str, Any]:
    lease = current()
    if lease is None or lease["token"] != token or not lease["holder"] or lease["boot_id"] != state.boot_id():
        raise state.Refused("StaleToken", token=token, current=lease["token"] if lease else None)
    return lease


def check(token: int) -> Dict[str, Any]:
    """Raise unless `token` may write now. Called under `state.locked()` before every write."""
    lease = _own(token)
    if not lease["live"]:
        raise state.Refused("LeaseExpired", token=token, age=lease["age"], ttl=lease["ttl"])
    return lease
