// What a policy is told, and what it wants to see: see wit/configure.wit.

import { configure } from "../policy";
// What the compiler calls when something is thrown.
import "./host";
import { putList, putText, putTexts, text, texts } from "./memory";

export class Setup {
  constructor(
    public policy: string,
    public attachment: string,
    public config: string,
    public backends: string[],
    public redirects: string[],
    public responses: string[],
  ) {}
}

export class Wishes {
  attributes: string[] = [];
  headers: string[] = [];
  /** With at least one, the configuration is refused. */
  problems: Problem[] = [];
}

export class Problem {
  constructor(public path: string, public message: string) {}
}

/** Reads `config = { … }`, a table of texts, into the keys that are known; tells what is wrong with it. */
export function settings(config: string, known: Map<string, string>): Problem[] {
  const reader = new Reader(config);
  if (!reader.take("{")) return [new Problem("", "must be a table")];
  while (!reader.take("}")) {
    reader.take(",");
    const key = reader.text();
    if (key == "" || !reader.take(":")) return [new Problem("", "must be a table of texts")];
    if (!known.has(key)) return [new Problem(key, "unknown; the keys are: " + known.keys().join(", "))];
    const value = reader.text();
    if (value == "") return [new Problem(key, "must be a text")];
    known.set(key, value);
  }
  return [];
}

class Reader {
  private at: i32 = 0;

  constructor(private json: string) {}

  take(sign: string): bool {
    while (this.at < this.json.length && " \t\r\n".includes(this.json.charAt(this.at))) this.at++;
    if (this.json.charAt(this.at) != sign) return false;
    this.at++;
    return true;
  }

  /** A text without escapes; empty if there is none. */
  text(): string {
    if (!this.take('"')) return "";
    const end = this.json.indexOf('"', this.at);
    const read = this.json.substring(this.at, end);
    if (end < 0 || read.includes("\\")) return "";
    this.at = end + 1;
    return read;
  }
}

const answer = memory.data(20, 4);

export function configure__configure(
  policy: usize, policyLength: i32, attachment: usize, attachmentLength: i32, config: usize, configLength: i32,
  backends: usize, backendCount: i32, redirects: usize, redirectCount: i32, responses: usize, responseCount: i32,
): usize {
  const setup = new Setup(
    text(policy, policyLength), text(attachment, attachmentLength), text(config, configLength),
    texts(backends, backendCount), texts(redirects, redirectCount), texts(responses, responseCount),
  );
  const wishes = configure(setup);
  store<u8>(answer, wishes.problems.length > 0 ? 1 : 0);
  if (wishes.problems.length > 0) {
    putProblems(answer + 4, wishes.problems);
  } else {
    putTexts(answer + 4, wishes.attributes);
    putTexts(answer + 12, wishes.headers);
  }
  return answer;
}

function putProblems(into: usize, problems: Problem[]): void {
  const list = heap.alloc(<usize>problems.length << 4);
  for (let index = 0; index < problems.length; index++) {
    putText(list + (<usize>index << 4), problems[index].path);
    putText(list + (<usize>index << 4) + 8, problems[index].message);
  }
  putList(into, list, problems.length);
}
