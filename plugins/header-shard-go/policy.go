// Sends requests with the same key to the same server, and only as many as it can take: `header-shard` in Go. The same
// configuration, the same choices; what they mean stands in ../header-shard/src/lib.rs.
//
// The shape of a policy in Go: one exported function for each of the contract, named as the canonical ABI names it. What is
// returned is the place of a record; what is in it must live until the call after it, `cabi_post_…`.
package main

import "unsafe"

// What the instance remembers between calls.
var (
	attributes int32
	limits     spill
	known      shards
)

// answer is a result: which case it is, then one list, for wishes two.
var answer struct {
	refused     uint32
	list, other list
}

var chosen choice

//go:wasmexport forebay:policy/configure@0.1.0#configure
func exportConfigure(_ unsafe.Pointer, _ int32, _ unsafe.Pointer, _ int32, config unsafe.Pointer, length int32,
	_ unsafe.Pointer, _ int32, _ unsafe.Pointer, _ int32, _ unsafe.Pointer, _ int32) unsafe.Pointer {
	wanted, problems := configure(text(config, length))
	if len(problems) > 0 {
		var refused [][2]list
		for _, one := range problems {
			refused = append(refused, [2]list{handOver(one.path), handOver(one.message)})
		}
		answer.refused, answer.list = 1, handOverAll(refused)
		return unsafe.Pointer(&answer)
	}
	var wishes []list
	for _, attribute := range wanted {
		wishes = append(wishes, handOver(attribute))
	}
	answer.refused, answer.list, answer.other = 0, handOverAll(wishes), list{}
	return unsafe.Pointer(&answer)
}

//go:wasmexport cabi_post_forebay:policy/configure@0.1.0#configure
func postConfigure(unsafe.Pointer) {
	forget()
}

func configure(config string) ([]string, []problem) {
	settings := readSettings(config)
	var wanted []string
	for _, source := range []string{"header", "cookie", "query"} {
		if name := settings.token(source); name != "" {
			wanted = append(wanted, source+":"+name)
		}
	}
	if wanted == nil {
		wanted = []string{"header:x-shard-key"}
	}
	attributes = int32(len(wanted))
	factor := "must be a number from 1 to 100 with at most three decimals"
	least := "must be a whole number from 0 to 1000000"
	limits.factor = settings.number("spill", 3, 1500, 1000, 100_000, factor)
	limits.least = settings.number("spill-min", 0, 8, 0, 1_000_000, least)
	return wanted, settings.finish()
}

//go:wasmexport forebay:policy/balance-pick@0.1.0#table
func exportTable(names unsafe.Pointer, count int32, _ unsafe.Pointer, _ int32, weights unsafe.Pointer, _ int32,
	states unsafe.Pointer, _ int32, _ unsafe.Pointer, _ int32, _ unsafe.Pointer, _ int32) {
	known = shards{}
	weight, state := unsafe.Slice((*int32)(weights), count), unsafe.Slice((*int32)(states), count)
	for at, name := range unsafe.Slice((*list)(names), count) {
		known.add(name.text(), weight[at], state[at])
	}
	forget()
}

//go:wasmexport forebay:policy/balance-pick@0.1.0#pick
func exportPick(_ unsafe.Pointer, length int32, avoid int32) unsafe.Pointer {
	chosen = nobody
	if key := keyHash(length); key >= 0 {
		chosen = known.choose(uint32(key), avoid, limits, func(server int32) int32 { return serversInFlight(server) }, columnInFlight)
	}
	forget()
	return unsafe.Pointer(&chosen)
}

// keyHash is the hash of the first attribute that is there and not empty, −1 if none is. The first of all was given; the
// others are asked for.
func keyHash(length int32) int32 {
	if length > 0 {
		return requestHash(0)
	}
	for at := int32(1); at < attributes; at++ {
		if requestLength(at) > 0 {
			return requestHash(at)
		}
	}
	return -1
}
