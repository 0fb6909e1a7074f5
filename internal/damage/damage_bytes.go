// Package damage damages files in tests as disks do: it flips bits, cuts files, and loses
// or swaps sectors, all drawn from a seed. The tests of each kind of file that a daemon
// writes use it, and internal/e2e has the list of the files. The rule: acknowledged data
// is never changed or lost without an error, and intact data is served.
package damage

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// TrialsVariable is the environment variable with the number of damages in each test.
// Without it a test makes a first share of them.
const TrialsVariable = "ROOST_DAMAGES"

// sectorSize is the number of bytes that a disk loses at once.
const sectorSize = 512

// DamageOnce returns a copy of b with one damage, and its description. b has at least one
// byte.
func DamageOnce(rng *rand.Rand, b []byte) (what string, struck []byte) {
	b = bytes.Clone(b)
	at := rng.IntN(len(b))
	first := at / sectorSize * sectorSize
	end := min(first+sectorSize, len(b))
	switch rng.IntN(12) {
	case 0:
		return fmt.Sprintf("cut to %d of %d bytes", at, len(b)), b[:at]
	case 1:
		return fmt.Sprintf("cut to the sector at %d", first), b[:first]
	case 2:
		clear(b[first:end])
		return fmt.Sprintf("no sector at %d", first), b
	case 3:
		from := rng.IntN(len(b)) / sectorSize * sectorSize
		copy(b[first:end], b[from:])
		return fmt.Sprintf("the sector at %d is that of %d", first, from), b
	case 4:
		n := min(len(b)-at, 1+rng.IntN(600))
		for i := range n {
			b[at+i] = byte(rng.Uint32())
		}
		return fmt.Sprintf("%d bytes at %d", n, at), b
	case 5, 6:
		bit, other, next := rng.IntN(8), rng.IntN(8), min(at+rng.IntN(16), len(b)-1)
		b[at] ^= 1 << bit
		b[next] ^= 1 << other
		return fmt.Sprintf("bit %d of byte %d and bit %d of byte %d", bit, at, other, next), b
	}
	bit := rng.IntN(8)
	b[at] ^= 1 << bit
	return fmt.Sprintf("bit %d of byte %d", bit, at), b
}

// TrialCount returns the number of damages in a test: share, or the value of
// TrialsVariable.
func TrialCount(t testing.TB, share int) int {
	t.Helper()
	text := os.Getenv(TrialsVariable)
	if text == "" {
		return share
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", TrialsVariable, err)
	}
	return n
}

// ForEach damages the file at path in one way after the other, and calls try each time.
// At the end the file has its first contents again.
func ForEach(t testing.TB, path string, share int, try func(what string)) {
	t.Helper()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	put := func(b []byte) {
		t.Helper()
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	defer put(whole)
	rng := rand.New(rand.NewPCG(18, uint64(len(whole))))
	for range TrialCount(t, share) {
		what, b := DamageOnce(rng, whole)
		if bytes.Equal(b, whole) {
			continue
		}
		put(b)
		try(what)
	}
}
