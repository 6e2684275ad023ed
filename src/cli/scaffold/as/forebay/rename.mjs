// Gives exports the names of the contract: `balance_pick__table` becomes `forebay:policy/balance-pick@0.1.0#table`.

import binaryen from "binaryen";
import { Transform } from "assemblyscript/transform";

export default class extends Transform {
  afterCompile(module) {
    const exported = Array.from({ length: module.getNumExports() }, (_, at) => module.getExportByIndex(at));
    for (const { name, value } of exported.map(binaryen.getExportInfo)) {
      const [face, call] = name.replaceAll("__", "#").replaceAll("_", "-").split("#");
      if (call === undefined) continue;
      module.removeExport(name);
      module.addFunctionExport(value, `forebay:policy/${face}@0.1.0#${call}`);
    }
  }
}
