package main

// Which servers a key prefers, in order: weighted rendezvous hashing over the names of the servers. What it means and why
// stands in ../header-shard/src/shards.rs; this computes the same numbers.

import (
	"hash/fnv"
	"math"
	"math/bits"
)

// loadMax is so small that no product overflows: more than a million in flight is a million.
const loadMax = 1 << 20

// server is one as it was shown last.
type server struct {
	seed    uint64 // the hash of its name
	weight  int64  // 0 takes no requests
	inverse uint64 // 2^24 / weight
}

// spill says when a server is crowded.
type spill struct {
	factor int64 // thousandths of its share of the requests in flight
	least  int64 // requests in flight with which it never is
}

// choice is a server and the next one; −1 for nobody.
type choice struct{ first, second int32 }

var nobody = choice{-1, -1}

// shards are the servers as they were shown last, and the weight of all that take requests.
type shards struct {
	servers []server
	weight  int64
}

func (all *shards) add(name string, weight, state int32) {
	if state != 0 {
		weight = 0
	}
	hash := fnv.New64a()
	hash.Write([]byte(name))
	one := server{mix(hash.Sum64()), int64(weight), (1 << 24) / uint64(max(weight, 1))}
	all.servers = append(all.servers, one)
	all.weight += one.weight
}

// choose tells where a key goes, and whom to ask if that one is full: the first two in its order that take requests and
// are not crowded. `load` tells the requests in flight of one server, `loads` of all.
func (all *shards) choose(key uint32, avoid int32, spill spill, load func(int32) int32, loads func() []int32) choice {
	order := all.best(key, avoid, func(int) bool { return true })
	if order.first < 0 || int64(load(order.first)) < spill.least {
		return order
	}
	roomy := all.best(key, avoid, all.roomy(spill, loads()))
	switch {
	case roomy.first < 0:
		return order
	case roomy.second >= 0:
		return roomy
	case roomy.first == order.first:
		return order
	default:
		return choice{roomy.first, order.first}
	}
}

// roomy tells who is not crowded.
func (all *shards) roomy(spill spill, loads []int32) func(int) bool {
	var total int64
	for _, load := range loads {
		total += bounded(load)
	}
	return func(at int) bool {
		var load int64
		if at < len(loads) {
			load = bounded(loads[at])
		}
		return load < spill.least ||
			(load+1)*all.weight*1000 <= spill.factor*(total+1)*all.servers[at].weight
	}
}

// best tells the first two in the key's order among those.
func (all *shards) best(key uint32, avoid int32, among func(int) bool) choice {
	chosen := nobody
	first, second := uint64(math.MaxUint64), uint64(math.MaxUint64)
	for at, server := range all.servers {
		if server.weight <= 0 || int32(at) == avoid || !among(at) {
			continue
		}
		cost := server.cost(key)
		if cost < first {
			second, chosen.second = first, chosen.first
			first, chosen.first = cost, int32(at)
		} else if cost < second {
			second, chosen.second = cost, int32(at)
		}
	}
	return chosen
}

// cost is an exponential draw of the pair, divided by the weight: the lower, the earlier in the order.
func (it server) cost(key uint32) uint64 {
	return minusLog2(mix(it.seed^uint64(key))) * it.inverse
}

// minusLog2 is 64 − log₂ of a number, in units of 2^-32: a straight line between powers of two and the curve above it.
func minusLog2(number uint64) uint64 {
	number |= 1
	zeros := uint64(bits.LeadingZeros64(number))
	part := number << zeros << 1 >> 32
	above := part * (1<<32 - part) >> 32
	return (zeros+1)<<32 - part - above*1409>>12
}

// mix spreads every bit over all: the end of SplitMix64.
func mix(bits uint64) uint64 {
	bits = (bits ^ bits>>30) * 0xbf58476d1ce4e5b9
	bits = (bits ^ bits>>27) * 0x94d049bb133111eb
	return bits ^ bits>>31
}

func bounded(load int32) int64 {
	return int64(min(max(load, 0), loadMax))
}
