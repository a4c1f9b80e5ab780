"""What Slack refuses in a message: its published limits, and texts that its markup would misread.

Stricter than Slack where Slack is lenient without saying so: an unknown field, an empty text or an unescaped
``<`` is a mistake here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

MOST_BLOCKS = 50
MOST_TEXT = 40_000
MOST_BLOCK_TEXT = 13_200

_TAG = re.compile(
    r"<(?:https?://[^\s<>|]+(?:\|[^<>|]+)?|mailto:[^\s<>|]+(?:\|[^<>|]+)?"
    r"|!date\^\d+\^[^<>|]+\|[^<>|]+|[@#][A-Z0-9]+(?:\|[^<>|]*)?|!(?:here|channel|everyone)(?:\|[^<>|]*)?"
    r"|!subteam\^[A-Z0-9]+(?:\|[^<>|]*)?)>"
)
_ENTITY = re.compile(r"&(?:amp|lt|gt);")
_PING = re.compile(r"<(?:@|!here|!channel|!everyone|!subteam)[^>]*>")
_BARE_PING = re.compile(r"@(?:here|channel|everyone)\b")


def length(text: str) -> int:
    """Characters as UTF-16 counts them: the strictest reading of Slack's limits."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def text_mistakes(text: Any, most: int, where: str) -> list[str]:
    """What is wrong with a text: its type, its length, its escapes."""
    if not isinstance(text, str):
        return [f"{where} must be a string"]
    mistakes = []
    if not text.strip():
        mistakes.append(f"{where} is empty")
    if length(text) > most:
        mistakes.append(f"{where} has more than {most} characters")
    rest = _ENTITY.sub("", _TAG.sub("", text))
    if re.search("[<>&]", rest):
        mistakes.append(f"{where} has an unescaped <, > or &")
    if re.search("[\ud800-\udfff\x00-\x08\x0b-\x1f]", text):
        mistakes.append(f"{where} has control characters or lone surrogates")
    return mistakes


def block_mistakes(blocks: Any) -> list[str]:
    """What is wrong with the blocks of a message; empty where Slack would take them."""
    if not isinstance(blocks, list):
        return ["blocks must be a list"]
    if not 1 <= len(blocks) <= MOST_BLOCKS:
        return [f"between 1 and {MOST_BLOCKS} blocks"]
    mistakes = []
    for index, block in enumerate(blocks):
        mistakes += _block(block, f"blocks[{index}]")
    return mistakes


def block_text(blocks: Any) -> list[str]:
    """Every text in the blocks."""
    return [text["text"] for text in _texts(blocks)]


def pings(message: dict[str, Any]) -> list[str]:
    """Everybody whom a message would ping, as written in it."""
    found = _PING.findall(message.get("text", ""))
    linked = message.get("link_names") or message.get("parse") == "full"
    if linked:
        found += _BARE_PING.findall(message.get("text", ""))
    for text in _texts(message.get("blocks", [])):
        if text["type"] == "mrkdwn":
            found += _PING.findall(text["text"])
            if linked or not text.get("verbatim"):
                found += _BARE_PING.findall(text["text"])
    return found


def metadata_mistake(metadata: Any) -> str | None:
    """Slack's code for what is wrong with a message's metadata."""
    if not isinstance(metadata, dict) or set(metadata) != {"event_type", "event_payload"}:
        return "invalid_metadata_format"
    if not re.fullmatch(r"[A-Za-z0-9_]{1,255}", str(metadata["event_type"])):
        return "invalid_metadata_schema"
    if not isinstance(metadata["event_payload"], dict):
        return "invalid_metadata_format"
    return "metadata_too_large" if len(json.dumps(metadata)) > 8000 else None


def _texts(blocks: Any) -> Iterator[dict[str, Any]]:
    if isinstance(blocks, dict):
        if blocks.get("type") in {"plain_text", "mrkdwn"}:
            yield blocks
        else:
            yield from _texts(list(blocks.values()))
    elif isinstance(blocks, list):
        for block in blocks:
            yield from _texts(block)


def _block(block: Any, where: str) -> list[str]:
    if not isinstance(block, dict):
        return [f"{where} must be an object"]
    allowed = {
        "header": {"type", "block_id", "text"},
        "section": {"type", "block_id", "text", "fields", "expand"},
        "context": {"type", "block_id", "elements"},
        "divider": {"type", "block_id"},
    }.get(str(block.get("type")))
    if allowed is None:
        return [f"{where} has the unknown type {block.get('type')!r}"]
    mistakes = [f"{where} has the unknown field {name!r}" for name in set(block) - allowed]
    if block["type"] == "header":
        mistakes += _text(block.get("text"), 150, {"plain_text"}, f"{where}.text")
    elif block["type"] == "section":
        mistakes += _section(block, where)
    elif block["type"] == "context":
        mistakes += _several(block.get("elements"), 3000, f"{where}.elements")
    return mistakes


def _section(block: dict[str, Any], where: str) -> list[str]:
    if "text" not in block and "fields" not in block:
        return [f"{where} has neither text nor fields"]
    mistakes = []
    if "text" in block:
        mistakes += _text(block["text"], 3000, {"plain_text", "mrkdwn"}, f"{where}.text")
    if "fields" in block:
        mistakes += _several(block["fields"], 2000, f"{where}.fields")
    return mistakes


def _several(texts: Any, most: int, where: str) -> list[str]:
    if not isinstance(texts, list) or not 1 <= len(texts) <= 10:
        return [f"{where} has between 1 and 10 entries"]
    mistakes = []
    for index, text in enumerate(texts):
        mistakes += _text(text, most, {"plain_text", "mrkdwn"}, f"{where}[{index}]")
    return mistakes


def _text(text: Any, most: int, types: set[str], where: str) -> list[str]:
    if not isinstance(text, dict) or text.get("type") not in types:
        return [f"{where} must be {' or '.join(sorted(types))}"]
    extra = "emoji" if text["type"] == "plain_text" else "verbatim"
    mistakes = [
        f"{where} has the unknown field {name!r}" for name in set(text) - {"type", "text", extra}
    ]
    if not isinstance(text.get(extra, False), bool):
        mistakes.append(f"{where}.{extra} must be true or false")
    return mistakes + text_mistakes(text.get("text"), most, where)
