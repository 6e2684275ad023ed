// A transform of asc: names of the contract are no names of AssemblyScript. What is exported as `pick` becomes
// `forebay:policy/balance-pick@0.1.0#pick`, and `cabi_post_configure` likewise.
import { Transform } from "assemblyscript/transform";
import binaryen from "binaryen";

const INTERFACES = { configure: "configure", table: "balance-pick", pick: "balance-pick" };

export default class extends Transform {
  afterCompile(module) {
    for (const [name, at] of Object.entries(INTERFACES)) {
      for (const prefix of ["", "cabi_post_"]) {
        const found = module.getExport(prefix + name);
        if (!found) continue;
        const { value } = binaryen.getExportInfo(found);
        module.removeExport(prefix + name);
        module.addFunctionExport(value, `${prefix}forebay:policy/${at}@0.1.0#${name}`);
      }
    }
  }
}
