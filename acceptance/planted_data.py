"""Training data with planted faults: by a seed, and with what is wrong on which line. `plant(folder, seed)`.

Rows are made of real words in no sensible order, half of them Chinese, so that two rows have nearly nothing in common unless it was
planted. Beside the faults there is what looks like one and is none: a byte order mark, blank lines, escapes, the same system prompt
in many rows, rows of which half is equal, short rows that differ in one digit.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TRAINING, VALIDATION = "train.jsonl", "validation.jsonl"
MAX_LENGTH = 512
ROWS, HELD_OUT = 1200, 120
ENGLISH = """
about above across after again against almost along already although always among another answer appear around because become
before behind believe below between beyond bridge bring brother build business carry castle center century change chapter
children choose circle city clear climate close cloud collect color common complete consider contain continue control corner
country course cover create culture current danger daughter decide degree depend describe desert design detail develop
different dinner direction discover distance doctor double during early earth east effect either electric energy engine
enough entire evening example except exercise expect explain family famous farmer father figure final finger finish flower
follow forest forward freedom friend future garden general glass gold government great ground group happen harbor health
heart heavy history horse hospital hundred image important include increase industry inside instead iron island journey
kitchen knowledge language later leave letter library light listen little machine manner market material matter measure
member memory method middle might minute model modern moment money month morning mother mountain music nation nature nearly
necessary never night north nothing notice number object ocean offer office often opinion orange order other outside
""".split()  # noqa: SIM905  (a page of text is easier to read than as many quotes)
CHINESE = """
时间 天气 学校 老师 学生 问题 回答 城市 国家 历史 文化 经济 科学 技术 电脑 网络 数据 模型 训练 语言 文字 音乐 电影 图书
报纸 新闻 朋友 家庭 父亲 母亲 孩子 医生 医院 健康 运动 足球 比赛 成绩 工作 公司 工厂 机器 汽车 火车 飞机 道路 桥梁 河流
山脉 海洋 森林 花园 动物 植物 春天 夏天 秋天 冬天 早晨 中午 晚上 今天 明天 昨天 世界 地球 太阳 月亮 星星 天空 白云 下雨
刮风 温度 颜色 红色 蓝色 绿色 黄色 高兴 难过 希望 梦想 方法 结果 原因 影响 发展 变化 增加 减少 提高 降低 开始 结束 继续
停止 研究 分析 解释 说明 讨论 决定 选择 比较 检查 安全 质量 数量 价格 市场 农业 工业 商业 教育 法律 政府 社会 人民 传统
现代 重要 简单 复杂 困难 容易 可能 必须 应该 非常 已经 正在 将来 过去 因为 所以 但是 虽然 如果 那么
""".split()  # noqa: SIM905

Plant = Callable[["_Garden", dict[str, Any]], bytes]


@dataclass(frozen=True, slots=True)
class Planted:
    """The two files, and of each finding's code the places where it was planted: FILE:LINE."""

    training: Path
    validation: Path
    faults: dict[str, set[str]] = field(default_factory=dict)


class _Garden:
    """One seed's rows."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)

    def text(self, words: int, chinese: bool) -> str:
        chosen = [self.draw.choice(CHINESE if chinese else ENGLISH) for _ in range(words)]
        sentences = [chosen[at : at + 9] for at in range(0, len(chosen), 9)]
        if chinese:
            return "".join("".join(sentence) + "。" for sentence in sentences)
        return " ".join(" ".join(sentence).capitalize() + "." for sentence in sentences)

    def row(self, words: int = 0) -> dict[str, Any]:
        """A good one."""
        chinese = self.draw.random() < 0.5
        words = words or int(self.draw.lognormvariate(3.9, 0.4)) + 12
        asked, told = self.text(words // 3, chinese), self.text(words - words // 3, chinese)
        return {"messages": [{"role": "user", "content": asked}, {"role": "assistant", "content": told}]}


def _json(row: dict[str, Any]) -> bytes:
    return json.dumps(row, ensure_ascii=False).encode()


def _changed(at: int, **values: Any) -> Plant:
    """A row whose message `at` has other values; None takes a key away."""

    def plant(garden: _Garden, row: dict[str, Any]) -> bytes:
        message = row["messages"][at] | values
        row["messages"][at] = {key: value for key, value in message.items() if value is not None}
        return _json(row)

    return plant


def _inserted(at: int, role: str, content: str) -> Plant:
    def plant(garden: _Garden, row: dict[str, Any]) -> bytes:
        row["messages"].insert(at, {"role": role, "content": content})
        return _json(row)

    return plant


def _whole(line: bytes) -> Plant:
    return lambda garden, row: line


# what is planted once each, at a line of its own
ONCE: dict[str, tuple[Plant, ...]] = {
    "Malformed": (
        lambda garden, row: _json(row)[:-20],
        lambda garden, row: _json(row)[:-1] + b', "score": NaN}',
        lambda garden, row: _json(row)[:-1] + b', "messages": []}',
        lambda garden, row: json.dumps({"messages": "今天天气很好"}, ensure_ascii=False).encode("gb18030"),
        lambda garden, row: json.dumps({"messages": [{"role": "user", "content": "\ud83d"}]}).encode(),
        _changed(0, role="human"),
        _changed(1, role="asistant"),
        _changed(1, content=None),
        _changed(1, content=["a list"]),
        _changed(1, weight=0),
        _whole(b'["a list"]'),
        _whole(b'{"text": "another format"}'),
        _whole(b'{"conversations": [{"from": "human", "value": "x"}]}'),
        _whole(b'{"instruction": "a question without an answer"}'),
        _whole(b"\x00" * 40),
        _whole(b'{"messages": ' + b"[" * 20_000),
    ),
    "Empty": (_changed(1, content=""), _changed(0, content=" \n\t "), _changed(1, content="　")),
    "RoleOrder": (
        _inserted(1, "user", "and one more question before the answer"),
        _inserted(2, "user", "a last question that nobody answers"),
        _inserted(0, "assistant", "an answer before the question"),
        _inserted(2, "system", "a system prompt at the end"),
    ),
    "TemplateRefuses": (_inserted(2, "tool", "42"), _inserted(2, "tool", "43")),
    "UnreadKeys": (lambda garden, row: _json(row | {"id": 1}), lambda garden, row: _json(row | {"source": "a book"})),
    "OverLength": (lambda garden, row: _json(garden.row(900)), lambda garden, row: _json(garden.row(700))),
}
OFTEN = {"Duplicates": 24, "NearDuplicates": 18}
LEAKS = {"Leakage": 5, "NearLeakage": 6}


def _answered(row: dict[str, Any]) -> dict[str, Any]:
    """A tool's result has to be followed by the assistant: only the template shall object."""
    if row["messages"][-1]["role"] == "tool":
        row["messages"].append({"role": "assistant", "content": "forty-two"})
    return row


def _again(garden: _Garden, row: dict[str, Any]) -> bytes:
    """The same row, written in another way."""
    return json.dumps(row, ensure_ascii=garden.draw.random() < 0.5, indent=None, separators=(",", " : ")).encode()


def _nearly(garden: _Garden, row: dict[str, Any]) -> bytes:
    """The same row but for one word, for case and signs, or for a short sentence at its end."""
    question, answer = (dict(message) for message in row["messages"])
    kind = garden.draw.randrange(3)
    if kind == 0:
        question["content"] = question["content"].replace(".", "!").upper() + " ?"
    elif kind == 1:
        answer["content"] += " Yes."
    else:
        at = len(answer["content"]) // 2
        answer["content"] = f"{answer['content'][:at]}xy{answer['content'][at:]}"
    return _json({"messages": [question, answer]})


def _decoys(garden: _Garden) -> Iterator[bytes]:
    """Good rows that look wrong, or alike."""
    prompt = {"role": "system", "content": garden.text(60, True)}
    for _ in range(12):  # they share a long system prompt, and no more
        yield _json({"messages": [prompt, *garden.row()["messages"]]})
    half = garden.text(40, False)
    for _ in range(6):  # half of each is the same
        told = {"role": "assistant", "content": garden.text(40, False)}
        yield _json({"messages": [{"role": "user", "content": half}, told]})
    for number in range(10, 22):  # short, and different in one digit
        yield _json({"messages": [{"role": "user", "content": f"1 + {number}"}, {"role": "assistant", "content": str(1 + number)}]})
    for text in (
        'a "quoted": {word}',
        "一行\u2028两行\u0085三行",
        "\\ud83d as text",
        "😀 🎉",
        "NaN",
        "<script>alert(1)</script> & <b>",
    ):
        row = garden.row()
        row["messages"][0]["content"] += text
        yield json.dumps(row, ensure_ascii=garden.draw.random() < 0.5).encode()


def plant(folder: Path, seed: int) -> Planted:
    """Write both files into a folder, and say what is wrong with them."""
    garden = _Garden(seed)
    good = [garden.row() for _ in range(ROWS)]
    lines: list[tuple[bytes, str]] = [(_json(row), "") for row in good]
    lines += [(line, "") for line in _decoys(garden)]
    for code, plants in ONCE.items():
        for one in plants:
            line = one(garden, garden.row())
            lines.append((_json(_answered(json.loads(line))) if code == "TemplateRefuses" else line, code))
    garden.draw.shuffle(lines)
    originals = iter(garden.draw.sample(range(len(good)), sum(OFTEN.values()) + sum(LEAKS.values())))
    planted = Planted(folder / TRAINING, folder / VALIDATION)
    lines = _blanks(garden, lines + _alike(garden, OFTEN, [good[next(originals)] for _ in range(sum(OFTEN.values()))]))
    held = [(_json(garden.row()), "") for _ in range(HELD_OUT)]
    held += _alike(garden, LEAKS, [good[next(originals)] for _ in range(sum(LEAKS.values()))])
    garden.draw.shuffle(held)
    for path, written, mark in ((planted.training, lines, b"\xef\xbb\xbf"), (planted.validation, held, b"")):
        path.write_bytes(mark + b"".join(line + (b"\r\n" if at % 7 == 0 else b"\n") for at, (line, _) in enumerate(written)))
        for number, (_, code) in enumerate(written, start=1):
            if code:
                planted.faults.setdefault(code, set()).add(f"{path}:{number}")
    return planted


def _alike(garden: _Garden, codes: dict[str, int], rows: list[dict[str, Any]]) -> list[tuple[bytes, str]]:
    """Copies, true ones and nearly true ones; they stand after the rows that they are copies of."""
    wanted = [code for code, count in codes.items() for _ in range(count)]
    makers = {"Duplicates": _again, "Leakage": _again, "NearDuplicates": _nearly, "NearLeakage": _nearly}
    copies = [(makers[code](garden, row), code) for code, row in zip(wanted, rows, strict=True)]
    garden.draw.shuffle(copies)
    return copies


def _blanks(garden: _Garden, lines: list[tuple[bytes, str]]) -> list[tuple[bytes, str]]:
    """Blank lines here and there, so that rows and lines are not counted alike."""
    found = []
    for line in lines:
        found += [(b"  ", "")] if garden.draw.random() < 0.01 else []
        found.append(line)
    return found
