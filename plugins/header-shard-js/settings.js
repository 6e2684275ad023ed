// Reads the table `config = { … }`: names, numbers, and what is wrong with them.

/** A token of RFC 9110. */
const TOKEN = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;

/** The table, and what was wrong so far: the path of a key, and what would be right. */
export class Settings {
  problems = [];
  known = [];

  constructor(json) {
    try {
      this.table = JSON.parse(json);
    } catch {
      this.table = null;
    }
    if (this.table === null || typeof this.table !== "object" || Array.isArray(this.table)) {
      this.table = {};
      this.wrong("", "must be a table");
    }
  }

  /** A name of a header, cookie or the like; undefined without one. */
  token(key) {
    const value = this.take(key);
    if (value === undefined) return undefined;
    if (typeof value !== "string" || value === "") return this.wrong(key, "must be a text that is not empty");
    return TOKEN.test(value) ? value : this.wrong(key, "must be a name without blanks and separators");
  }

  /** A number with so many decimals at most, in units of the last. */
  number(key, places, otherwise, least, most, message) {
    const value = this.take(key);
    if (value === undefined) return otherwise;
    const unit = 10 ** places;
    const number = typeof value === "number" ? Math.round(value * unit) : NaN;
    // A decimal that was written with more places is not what its rounded self stands for.
    if (number / unit === value && number >= least && number <= most) return number;
    this.wrong(key, message);
    return otherwise;
  }

  /** All that was wrong, unknown keys included. */
  finish() {
    const known = this.known.join("`, `");
    for (const key of Object.keys(this.table)) {
      if (!this.known.includes(key)) this.wrong(key, `unknown; the keys are \`${known}\``);
    }
    return this.problems;
  }

  wrong(path, message) {
    this.problems.push({ path, message });
  }

  take(key) {
    this.known.push(key);
    return Object.hasOwn(this.table, key) ? this.table[key] : undefined;
  }
}
