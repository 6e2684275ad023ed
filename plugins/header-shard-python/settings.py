"""Reads the table `config = { … }`: names, numbers, and what is wrong with them."""

import json
import re
from decimal import Decimal

# A token of RFC 9110.
TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


class Settings:
    """The table, and what was wrong so far: the path of a key, and what would be right."""

    def __init__(self, text):
        self.problems = []
        self.known = []
        try:
            # Decimals stay as they were written: they are counted.
            self.table = json.loads(text, parse_float=Decimal)
        except ValueError:
            self.table = None
        if not isinstance(self.table, dict):
            self.table = {}
            self.wrong("", "must be a table")

    def token(self, key):
        """A name of a header, cookie or the like; None without one."""
        value = self.take(key)
        if value is None:
            return None
        if not isinstance(value, str) or not value:
            return self.wrong(key, "must be a text that is not empty")
        if TOKEN.fullmatch(value):
            return value
        return self.wrong(key, "must be a name without blanks and separators")

    def number(self, key, places, otherwise, least, most, message):
        """A number with so many decimals at most, in units of the last."""
        value = self.take(key)
        if value is None:
            return otherwise
        if isinstance(value, (int, Decimal)) and not isinstance(value, bool):
            number = value * 10**places
            if least <= number <= most and number == int(number):
                return int(number)
        self.wrong(key, message)
        return otherwise

    def finish(self):
        """All that was wrong, unknown keys included."""
        known = "`, `".join(self.known)
        for key in self.table:
            if key not in self.known:
                self.wrong(key, f"unknown; the keys are `{known}`")
        return self.problems

    def wrong(self, path, message):
        self.problems.append((path, message))

    def take(self, key):
        self.known.append(key)
        return self.table.get(key)
