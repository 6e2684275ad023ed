package main

// The canonical ABI by hand, as far as a policy that picks needs it. A list or a text crosses as a place and a length, of
// 32 bits each: a pointer of Go has 64, so that no struct with one can be handed over.

import "unsafe"

// main is never called: a component has none.
func main() {}

//go:wasmimport forebay:policy/request@0.1.0 hash
func requestHash(attribute int32) int32

//go:wasmimport forebay:policy/request@0.1.0 length
func requestLength(attribute int32) int32

//go:wasmimport forebay:policy/servers@0.1.0 in-flight
func serversInFlight(server int32) int32

//go:wasmimport forebay:policy/servers@0.1.0 column
func serversColumn(figure int32, into unsafe.Pointer)

// arena is where the host puts what it hands over in this call, in words, so that everything is aligned.
var (
	arena = make([]uint64, 8<<10)
	used  int
)

// handed keeps from the garbage collector what this call hands back, and arenas that were too small.
var handed []any

//go:wasmexport cabi_realloc
func realloc(old unsafe.Pointer, oldSize, align, size int32) unsafe.Pointer {
	words := int(size)/8 + 1
	if used+words > len(arena) {
		handed = append(handed, arena)
		arena, used = make([]uint64, max(words, 2*len(arena))), 0
	}
	place := unsafe.Pointer(&arena[used])
	used += words
	copy(unsafe.Slice((*byte)(place), size), unsafe.Slice((*byte)(old), oldSize))
	return place
}

// forget is the end of a call.
func forget() {
	clear(handed)
	handed, used = handed[:0], 0
}

// list is a list or a text as it crosses.
type list struct{ place, length uint32 }

func text(place unsafe.Pointer, length int32) string {
	return string(unsafe.Slice((*byte)(place), length))
}

func (it list) text() string {
	return text(unsafe.Pointer(uintptr(it.place)), int32(it.length))
}

// handOver gives a text to the host until the call has ended.
func handOver(text string) list {
	handed = append(handed, text)
	return list{address(unsafe.Pointer(unsafe.StringData(text))), uint32(len(text))}
}

// handOverAll gives a slice to the host until the call has ended.
func handOverAll[Item any](items []Item) list {
	handed = append(handed, items)
	return list{address(unsafe.Pointer(unsafe.SliceData(items))), uint32(len(items))}
}

func address(place unsafe.Pointer) uint32 {
	return uint32(uintptr(place))
}

// columnInFlight asks for the requests in flight of all servers, by index.
func columnInFlight() []int32 {
	var into list
	serversColumn(0, unsafe.Pointer(&into))
	return unsafe.Slice((*int32)(unsafe.Pointer(uintptr(into.place))), into.length)
}
