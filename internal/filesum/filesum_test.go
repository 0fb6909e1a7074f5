package filesum

import (
	"bytes"
	"encoding/json"
	"testing"
)

type taskRecord struct {
	Name  string
	Lease int
}

// TestEveryBit flips each bit of a text and cuts it everywhere. The reader must get what
// was written or an error; old files without a checksum are read.
func TestEveryBit(t *testing.T) {
	want := taskRecord{"roost-1", 4711}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	read := func(text []byte) (got taskRecord, err error) {
		if text, err = VerifyChecksum(text); err == nil {
			err = json.Unmarshal(text, &got)
		}
		return got, err
	}
	whole := AppendChecksum(text)
	for _, good := range [][]byte{whole, text, append(bytes.Clone(text), '\n')} {
		if got, err := read(good); err != nil || got != want {
			t.Errorf("%q: %v, %v", good, got, err)
		}
	}
	for at := range whole {
		for bit := range 8 {
			b := bytes.Clone(whole)
			b[at] ^= 1 << bit
			if got, err := read(b); err == nil && got != want {
				t.Errorf("bit %d of byte %d: %v, without a word", bit, at, got)
			}
		}
		if got, err := read(whole[:at]); err == nil && got != want {
			t.Errorf("cut to %d bytes: %v, without a word", at, got)
		}
	}
}
