// Reads the table `config = { … }`: JSON text of texts and numbers, one key after the other.

/** Something wrong: the path of the key, and what would be right. */
export class Problem {
  constructor(readonly path: string, readonly message: string) {}
}

const enum Kind { Text, Number, Other }

class Value {
  constructor(readonly kind: Kind, readonly text: string) {}
}

/** The table, and what was wrong so far. */
export class Settings {
  problems: Problem[] = [];
  private keys: string[] = [];
  private values: Value[] = [];
  private at: i32 = 0;

  constructor(private readonly json: string) {
    if (!this.table()) this.wrong("", "must be a table");
  }

  /** A name of a header, cookie or the like: a token of RFC 9110. Empty without one. */
  token(key: string): string {
    const place = this.keys.indexOf(key);
    if (place < 0) return "";
    const value = this.values[place];
    if (value.kind != Kind.Text || value.text.length == 0) return this.wrong(key, "must be a text that is not empty");
    for (let at = 0; at < value.text.length; at++) {
      const sign = value.text.charCodeAt(at), letter = sign | 32;
      if ((letter >= 97 && letter <= 122) || isDigit(sign) || "!#$%&'*+-.^_`|~".includes(value.text.charAt(at))) continue;
      return this.wrong(key, "must be a name without blanks and separators");
    }
    return value.text;
  }

  /** A number with so many decimals at most, in units of the last. */
  number(key: string, places: i32, otherwise: i64, least: i64, most: i64, message: string): i64 {
    const place = this.keys.indexOf(key);
    if (place < 0) return otherwise;
    const value = this.values[place];
    const number = value.kind == Kind.Number ? decimal(value.text, places) : -1;
    if (number >= least && number <= most) return number;
    this.wrong(key, message);
    return otherwise;
  }

  /** Whatever is no key of the policy. */
  finish(known: string[]): void {
    for (let at = 0; at < this.keys.length; at++) {
      const key = this.keys[at];
      if (!known.includes(key)) this.wrong(key, "unknown; the keys are `" + known.join("`, `") + "`");
    }
  }

  private wrong(path: string, message: string): string {
    this.problems.push(new Problem(path, message));
    return "";
  }

  private table(): bool {
    if (!this.take("{")) return false;
    while (!this.take("}")) {
      if (this.keys.length && !this.take(",")) return false;
      const key = this.value(), colon = this.take(":"), value = this.value();
      if (!key || key.kind != Kind.Text || !colon || !value) return false;
      this.keys.push(key.text);
      this.values.push(value);
    }
    return true;
  }

  private take(sign: string): bool {
    while (this.at < this.json.length && " \t\r\n".includes(this.json.charAt(this.at))) this.at++;
    if (this.json.charAt(this.at) != sign) return false;
    this.at++;
    return true;
  }

  private value(): Value | null {
    if (this.take('"')) return this.quoted();
    const begin = this.at;
    let depth = 0;
    for (; this.at < this.json.length; this.at++) {
      const sign = this.json.charAt(this.at);
      if (sign == '"') {
        this.at++;
        if (!this.quoted()) return null;
        this.at--;
      } else if (sign == "{" || sign == "[") depth++;
      else if (depth && (sign == "}" || sign == "]")) depth--;
      else if (!depth && " \t\r\n,}".includes(sign)) break;
    }
    const text = this.json.substring(begin, this.at), sign = text.charCodeAt(0);
    if (depth || !text.length) return null;
    return new Value(sign == 45 || isDigit(sign) ? Kind.Number : Kind.Other, text);
  }

  /** What stands between two quotes, the first of which was taken. No name and no number needs an escape. */
  private quoted(): Value | null {
    const begin = this.at;
    let kind = Kind.Text;
    for (; this.at < this.json.length; this.at++) {
      const sign = this.json.charAt(this.at);
      if (sign == '"') return new Value(kind, this.json.substring(begin, this.at++));
      if (sign == "\\") {
        kind = Kind.Other;
        this.at++;
      }
    }
    return null;
  }
}

/** `12`, `12.5`: in units of 10 to the −`places`; −1 for anything else. */
function decimal(text: string, places: i32): i64 {
  const parts = text.split("."), whole = parts[0], rest = parts.length > 1 ? parts[1] : "";
  if (whole.length == 0 || whole.length > 9 || rest.length > places || parts.length > 2) return -1;
  if (parts.length == 2 && !rest.length) return -1;
  const digits = whole + rest.padEnd(places, "0");
  let number: i64 = 0;
  for (let at = 0; at < digits.length; at++) {
    const digit = digits.charCodeAt(at);
    if (!isDigit(digit)) return -1;
    number = number * 10 + digit - 48;
  }
  return number;
}

function isDigit(sign: i32): bool {
  return sign >= 48 && sign <= 57;
}
