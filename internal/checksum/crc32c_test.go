package checksum

import (
	"bytes"
	"hash/crc32"
	"testing"
)

// TestOf compares the checksum of pieces with that of the whole.
func TestOf(t *testing.T) {
	whole := []byte("a record of some length")
	want := crc32.Checksum(whole, crc32.MakeTable(crc32.Castagnoli))
	if got := Of(whole[:3], nil, whole[3:9], whole[9:]); got != want {
		t.Errorf("got %x, want %x", got, want)
	}
}

// TestFlippedBit flips each bit of a message. It must be found; of two flipped bits none
// must be.
func TestFlippedBit(t *testing.T) {
	message := bytes.Repeat([]byte("what it was"), 20)
	sum := Of(message)
	for at := range 8 * len(message) {
		flipped := bytes.Clone(message)
		flipped[at/8] ^= 1 << (at % 8)
		if got, found := FlippedBit(sum^Of(flipped), len(message)); !found || got != at {
			t.Fatalf("bit %d: got %d, %v", at, got, found)
		}
		other := (at + 97) % (8 * len(message))
		flipped[other/8] ^= 1 << (other % 8)
		if got, found := FlippedBit(sum^Of(flipped), len(message)); found {
			t.Fatalf("bits %d and %d: got %d", at, other, got)
		}
	}
	if at, found := FlippedBit(1<<7, len(message)); !found || at != -1 {
		t.Errorf("a bit of the checksum: got %d, %v", at, found)
	}
}
