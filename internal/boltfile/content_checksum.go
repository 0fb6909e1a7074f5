package boltfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/roost-batch/roost/internal/checksum"
)

// Each record has a checksum after its value, over the name of its bucket, its key and
// its value, so that a record in a wrong place is detected, too: package checksum. Lost
// records leave no bad checksum. So each transaction writes a seal with the number of
// records in each bucket and the sum of their checksums.

// sumSize is the size of a checksum in bytes.
const sumSize = checksum.Size

// recordChecksum returns the checksum of a record.
func recordChecksum(bucket string, key, value []byte) uint32 {
	head := binary.BigEndian.AppendUint32(append([]byte(bucket), 0), uint32(len(key)))
	return checksum.Of(head, key, value)
}

// appendChecksum returns a value followed by its checksum.
func appendChecksum(bucket string, key, value []byte) []byte {
	raw := make([]byte, 0, len(value)+sumSize)
	return binary.BigEndian.AppendUint32(append(raw, value...), recordChecksum(bucket, key, value))
}

// verifyChecksum returns the value of a record, and false if the checksum is wrong.
func verifyChecksum(bucket string, key, raw []byte) (value []byte, whole bool) {
	if len(raw) < sumSize {
		return nil, false
	}
	value = raw[: len(raw)-sumSize : len(raw)-sumSize]
	return value, binary.BigEndian.Uint32(raw[len(raw)-sumSize:]) == recordChecksum(bucket, key, value)
}

// correctFlippedBit finds the one bit of a record whose flip makes its checksum right,
// and returns the original record.
func correctFlippedBit(bucket string, key, raw []byte) (k, v []byte, found bool) {
	if len(raw) < sumSize || len(key) == 0 {
		return nil, nil, false
	}
	value, sum := raw[:len(raw)-sumSize], binary.BigEndian.Uint32(raw[len(raw)-sumSize:])
	at, wrong := checksum.FlippedBit(sum^recordChecksum(bucket, key, value), len(key)+len(value))
	if !wrong {
		return nil, nil, false
	}
	k, v = bytes.Clone(key), append([]byte{}, value...)
	switch place := at / 8; {
	case at < 0: // a bit of the checksum itself
	case place < len(k):
		k[place] ^= 1 << (at % 8)
	default:
		v[place-len(k)] ^= 1 << (at % 8)
	}
	return k, v, true
}

// bucketChecksum is the number of records in a bucket and the sum of their checksums.
type bucketChecksum struct{ count, sum uint64 }

func (t *bucketChecksum) add(raw []byte)    { t.count, t.sum = t.count+1, t.sum+storedChecksum(raw) }
func (t *bucketChecksum) remove(raw []byte) { t.count, t.sum = t.count-1, t.sum-storedChecksum(raw) }

func storedChecksum(raw []byte) uint64 {
	if len(raw) < sumSize {
		return 0
	}
	return uint64(binary.BigEndian.Uint32(raw[len(raw)-sumSize:]))
}

// contentChecksum is the seal of a file's contents, as of its last transaction.
type contentChecksum struct {
	id      [16]byte // of the file; another file in its place has another id
	format  uint64
	buckets map[string]bucketChecksum // nil: the seal is damaged
}

func (s *contentChecksum) clone() *contentChecksum {
	return &contentChecksum{s.id, s.format, maps.Clone(s.buckets)}
}

func (s *contentChecksum) encode() []byte {
	b := append([]byte(nil), s.id[:]...)
	all := maps.Clone(s.buckets)
	if s.format > formatVersion { // the record of the format has no checksum of its own
		all[string(bucketMeta)] = bucketChecksum{count: s.format}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t := all[name]
		b = append(append(b, byte(len(name))), name...)
		b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, t.count), t.sum)
	}
	return appendChecksum(string(bucketChecksums), keyChecksum, b)
}

func decodeContentChecksum(raw []byte) (*contentChecksum, error) {
	b, whole := verifyChecksum(string(bucketChecksums), keyChecksum, raw)
	s := &contentChecksum{format: formatVersion}
	if !whole || len(b) < len(s.id) {
		return s, fmt.Errorf("the seal of its contents is damaged")
	}
	b, s.buckets = b[copy(s.id[:], b):], map[string]bucketChecksum{}
	for len(b) > 0 {
		n := int(b[0])
		if len(b) < 1+n+16 {
			return &contentChecksum{}, fmt.Errorf("the seal of its contents is damaged")
		}
		name := string(b[1 : 1+n])
		s.buckets[name] = bucketChecksum{binary.BigEndian.Uint64(b[1+n:]), binary.BigEndian.Uint64(b[9+n:])}
		b = b[17+n:]
	}
	if t, raised := s.buckets[string(bucketMeta)]; raised {
		s.format = t.count
		delete(s.buckets, string(bucketMeta))
	}
	return s, nil
}

// The two buckets of this package in each file.
var (
	bucketChecksums = []byte("seal")
	keyChecksum     = []byte("seal")
	bucketMeta      = []byte("meta") // its records have no checksums, so that older programs can read the format
	keyFormat       = []byte("format")
)

// formatVersion is the format of files whose records have checksums. In format 1, or
// without a format, they have none. The contents of a kind of file may have later
// formats, which [Tx.SetFormat] sets.
const formatVersion = 2

func isInternalBucket(bucket string) bool {
	return bucket == string(bucketChecksums) || bucket == string(bucketMeta)
}

func fileFormat(value []byte) uint64 {
	if len(value) == 8 {
		return binary.BigEndian.Uint64(value)
	}
	return 0
}

func bigEndian(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func withPrefix(key, lo, hi []byte) bool {
	return bytes.Compare(key, lo) >= 0 && (hi == nil || bytes.Compare(key, hi) < 0)
}
