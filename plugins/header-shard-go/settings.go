package main

// Reads the table `config = { … }`: names, numbers, and what is wrong with them.

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// token is what a token of RFC 9110 is made of.
const token = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// problem is something wrong: the path of the key, and what would be right.
type problem struct{ path, message string }

// settings are the table, and what was wrong so far.
type settings struct {
	table    map[string]any
	known    []string
	problems []problem
}

func readSettings(text string) *settings {
	it := &settings{}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber() // decimals are counted as they were written
	if err := decoder.Decode(&it.table); err != nil || it.table == nil {
		it.wrong("", "must be a table")
	}
	return it
}

// token is a name of a header, cookie or the like; empty without one.
func (it *settings) token(key string) string {
	value, given := it.take(key)
	text, _ := value.(string)
	switch {
	case !given:
		return ""
	case text == "":
		it.wrong(key, "must be a text that is not empty")
	case strings.Trim(text, token) != "":
		it.wrong(key, "must be a name without blanks and separators")
	default:
		return text
	}
	return ""
}

// number has so many decimals at most, and is in units of the last.
func (it *settings) number(key string, places int, otherwise, least, most int64, message string) int64 {
	value, given := it.take(key)
	if !given {
		return otherwise
	}
	text, _ := value.(json.Number)
	whole, rest, _ := strings.Cut(string(text), ".")
	if len(whole) <= 9 && len(rest) <= places {
		digits := whole + rest + strings.Repeat("0", places-len(rest))
		if number, err := strconv.ParseInt(digits, 10, 64); err == nil && number >= least && number <= most {
			return number
		}
	}
	it.wrong(key, message)
	return otherwise
}

// finish tells all that was wrong, unknown keys included.
func (it *settings) finish() []problem {
	known := strings.Join(it.known, "`, `")
	for _, key := range slices.Sorted(maps.Keys(it.table)) {
		if !slices.Contains(it.known, key) {
			it.wrong(key, "unknown; the keys are `"+known+"`")
		}
	}
	return it.problems
}

func (it *settings) wrong(path, message string) {
	it.problems = append(it.problems, problem{path, message})
}

func (it *settings) take(key string) (any, bool) {
	it.known = append(it.known, key)
	value, given := it.table[key]
	return value, given
}
