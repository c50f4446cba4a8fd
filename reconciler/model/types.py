"""Scalar types of the manifest language: each value arrives as the text that was typed, and has one closed form.

A value of another form is refused with a code (see `refuse`); `reconciler.render.problems` has the words. Forms hold
ASCII only, no white space, no quote, no shell or template character, and begin with no dash: they go into argv, paths
and files. (A description is free text: printable, one line; the model of a GPU is words with one space between them.)
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, GetCoreSchemaHandler, GetJsonSchemaHandler, WithJsonSchema
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from reconciler.model import hostlist as hosts
from reconciler.model.problem import Datum
from reconciler.model.words import nearest

_TYPED = ["string", "number"]  # an editor's YAML reads 3.10, 0644 and 22 as numbers; here they are the text typed
_SEGMENT = r"(?!\.{1,2}(?:/|$))[A-Za-z0-9_.][A-Za-z0-9@_+.-]{0,254}"
_DNS_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST = rf"(?:{_DNS_LABEL}(?:\.{_DNS_LABEL})*|\[[0-9a-fA-F:]+\])(?::[0-9]{{1,5}})?"  # with a port; IPv6 in brackets
_ACCOUNT = r"[a-z_][a-z0-9_-]{0,31}"  # useradd(8): at most 32 characters
_EXACT = r"(?=.*[0-9])(?:[0-9]{1,5}:)?[0-9A-Za-z][0-9A-Za-z.+~^_]*(?:-[0-9A-Za-z.+~^_]+)*"
_PREFIX = r"(?=.*[0-9])(?:[0-9]{1,5}:)?[0-9A-Za-z][0-9A-Za-z.+~^_]*(?:-[0-9A-Za-z.+~^_]+)*[.-]\*"
_PIN = r"[0-9]+(?:\.[0-9]+)*(?:(?:a|b|rc)[0-9]+)?(?:\.post[0-9]+)?(?:\.dev[0-9]+)?"
_LOCAL = r"(?:\+[a-z0-9]+(?:\.[a-z0-9]+)*)?"
_CLAUSE = rf"(?:(?:==|!=)(?:{_PIN}{_LOCAL}|{_PIN}\.\*)|(?:~=|<=|>=|<|>){_PIN})"
_SHORT = 32  # characters; what is longer than a form this short is more likely something else than too long
Advice = Callable[[str], PydanticCustomError | None]


def refuse(code: str, **data: Datum) -> PydanticCustomError:
    """The error of a validator: a code and its data, no words."""
    return PydanticCustomError(code, code, data)


class Form:
    """A closed form of text: `pattern` matches all of it, in at most `limit` characters; validator and JSON Schema.

    `what` names the form; `advice` may know a better answer than that a text does not have it.
    """

    def __init__(self, what: str, pattern: str, limit: int, *, typed: bool = False, advice: Advice | None = None) -> None:
        self.what, self.limit, self.advice = what, limit, advice
        self._match = re.compile(pattern).fullmatch
        self._schema: JsonSchemaValue = {
            "type": _TYPED if typed else "string",
            "pattern": f"^(?:{pattern})$",
            "maxLength": limit,
        }

    def check(self, text: str) -> str:
        """`text`, or a refusal: `too-long`, `form`, or what the advice says."""
        if len(text) > self.limit:
            raise refuse("too-long" if self.limit > _SHORT else "form", form=self.what, limit=self.limit)
        if self._match(text) is None:
            raise (self.advice and self.advice(text)) or refuse("form", form=self.what)
        return text

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return dict(self._schema)


class HostsForm(Form):
    """A host list, each host of which has the form that `each` tells."""

    def __init__(self, what: str, each: Callable[[str], bool]) -> None:
        super().__init__(what, r"[A-Za-z0-9.:\[\], -]+", 1024)
        self._each = each

    def check(self, text: str) -> str:
        """`text`, or a refusal: `host-list`, `host-range`, `host-count`, or `form` with the host that is wrong."""
        try:
            wrong = next((host for host in hosts.ends(text) if not self._each(host)), None)
        except hosts.HostListError as e:
            raise refuse(e.code, piece=e.piece, limit=hosts.MAX_HOSTS) from None
        if wrong is not None:
            raise refuse("form", form=self.what, found=wrong)
        return text


def _name_advice(text: str) -> PydanticCustomError | None:
    fixed = re.sub(r"[^a-z0-9.-]+", "-", text.lower()).strip("-.")
    return refuse("form", form="name", near=fixed) if text.isascii() and hosts.is_node_name(fixed) else None


def _version_advice(text: str) -> PydanticCustomError | None:
    if re.fullmatch(r"[0-9A-Za-z.+~^_:-]*\*", text):
        fixed = text[:-1].rstrip(".-") + ".*"
        return refuse("version-prefix", near=fixed if re.fullmatch(_PREFIX, fixed) else None)
    if text in ("latest", "newest", "true", "installed", "yes"):
        return refuse("version-word", near="present")
    return refuse("version-word", near=near) if (near := nearest(text, ("present", "absent"))) else None


def _pin_advice(text: str) -> PydanticCustomError | None:
    return refuse("python-pin", near=near) if (near := text.removeprefix("v").removeprefix("==").strip()) != text else None


def _driver_advice(text: str) -> PydanticCustomError | None:
    if branch := re.match(r"([0-9]{3})(?:-|$)", text):
        return refuse("driver-stream" if "-" in text else "driver-branch", near=f"{branch[1]}.*")
    return None


def _count(value: object) -> int:
    if not isinstance(value, str) or not re.fullmatch(r"[1-9][0-9]?", value):
        raise refuse("form", form="gpu-count")
    return int(value)


def _port(value: object) -> int:
    if not isinstance(value, str) or not re.fullmatch(r"[0-9]{1,5}", value) or not 1 <= int(value) <= 65535:
        raise refuse("form", form="port")
    return int(value)


def _keep(value: object) -> int:
    if not isinstance(value, str) or not re.fullmatch(r"[1-9][0-9]?", value):
        raise refuse("form", form="keep")
    return int(value)


def _printable(value: object) -> object:
    if isinstance(value, str) and not value.isprintable():
        raise refuse("form", form="description")
    return value


def _switch(value: object) -> bool:
    if value not in ("true", "false"):
        raise refuse("form", form="switch", near=_SWITCHES.get(value.lower()) if isinstance(value, str) else None)
    return value == "true"


def _ip(text: str) -> str:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        raise refuse("form", form="ip") from None
    return text


def _unit_advice(text: str) -> PydanticCustomError | None:
    fixed = f"{text}.service"
    return refuse("form", form="unit", near=fixed) if re.fullmatch(_UNIT, fixed) and "." not in text else None


def _unit(text: str) -> str:
    if text.startswith("reconcile-step-"):
        raise refuse("unit-of-ours")
    return text


_SWITCHES = dict.fromkeys(("yes", "on", "true", "1"), "true") | dict.fromkeys(("no", "off", "false", "0"), "false")
# systemd.unit(5); devices and scopes are made by the kernel and by programs, never by a file
_UNIT_WORD = r"(?:[A-Za-z0-9:_]|\\x[0-9a-f]{2})(?:[A-Za-z0-9:_.-]|\\x[0-9a-f]{2})*"
_UNIT_TYPES = "service|socket|timer|path|mount|automount|swap|target|slice"
_UNIT = rf"{_UNIT_WORD}(?:@(?:[A-Za-z0-9:_.-]|\\x[0-9a-f]{{2}})*)?\.(?:{_UNIT_TYPES})"
_LABEL = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
Name = Annotated[str, Form("name", rf"{_LABEL}(?:\.{_LABEL})*", 63, typed=True, advice=_name_advice)]
Description = Annotated[str, BeforeValidator(_printable), Form("description", r".*", 200, typed=True)]
PackageName = Annotated[str, Form("package", r"[A-Za-z0-9][A-Za-z0-9._+-]*", 128)]
PackageState = Annotated[str, Form("version", rf"present|absent|{_EXACT}|{_PREFIX}", 128, typed=True, advice=_version_advice)]
DriverVersion = Annotated[str, Form("driver", r"[0-9]{3}(?:\.[0-9]{1,4}){1,2}|[0-9]{3}\.\*", 16, typed=True, advice=_driver_advice)]
GpuModel = Annotated[str, Form("gpu-model", r"[A-Za-z][A-Za-z0-9.+-]*(?: [A-Za-z0-9][A-Za-z0-9.+-]*)*", 64)]
GpuCount = Annotated[int, BeforeValidator(_count), WithJsonSchema({"type": "integer", "minimum": 1, "maximum": 99})]
PythonPackage = Annotated[str, Form("python-package", r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?(?:\[[A-Za-z0-9_.,-]+\])?", 128)]
PythonPin = Annotated[
    str, Form("python-pin", rf"{_PIN}{_LOCAL}|{_PIN}\.\*|{_CLAUSE}(?:,{_CLAUSE})*", 128, typed=True, advice=_pin_advice)
]
PythonSeries = Annotated[str, Form("python-series", r"3\.[0-9]{1,2}", 8, typed=True)]
AbsolutePath = Annotated[str, Form("path", rf"(?:/{_SEGMENT})+", 1024)]
RepositoryPath = Annotated[str, Form("repository-path", rf"{_SEGMENT}(?:/{_SEGMENT})*", 1024)]
KeyPath = Annotated[str, Form("identity", rf"~?(?:/{_SEGMENT})+", 1024)]
Account = Annotated[str, Form("account", _ACCOUNT, 32)]
UnitName = Annotated[str, Form("unit", _UNIT, 255, advice=_unit_advice), AfterValidator(_unit)]
HostName = Annotated[str, Form("host-name", rf"{_DNS_LABEL}(?:\.{_DNS_LABEL})*", 253)]
IpAddress = Annotated[str, Form("ip", r"[0-9A-Fa-f:.]+", 45), AfterValidator(_ip)]
FileMode = Annotated[str, Form("mode", r"[0-7]{3,4}", 4, typed=True)]
MirrorUrl = Annotated[str, Form("mirror", rf"https?://{_HOST}(?:/{_SEGMENT})*/?", 512)]
WheelhousePlace = Annotated[str, Form("wheelhouse", rf"https?://{_HOST}(?:/{_SEGMENT})*/?|(?:/{_SEGMENT})+", 512)]
JumpHost = Annotated[str, Form("jump", rf"(?:{_ACCOUNT}@)?{_HOST}", 300)]
CountOrShare = Annotated[str, Form("count-or-share", r"[1-9][0-9]{0,4}|(?:[1-9][0-9]?|100)%", 5, typed=True)]
NodeList = Annotated[str, HostsForm("node", hosts.is_node_name)]
AddressList = Annotated[str, HostsForm("address", hosts.is_address)]
Keep = Annotated[int, BeforeValidator(_keep), WithJsonSchema({"type": "integer", "minimum": 1, "maximum": 99})]
Port = Annotated[int, BeforeValidator(_port), WithJsonSchema({"type": "integer", "minimum": 1, "maximum": 65535})]
Switch = Annotated[bool, BeforeValidator(_switch), WithJsonSchema({"type": "boolean"})]
