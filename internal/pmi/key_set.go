package pmi

import "encoding/binary"

// A KeySet is keys and values one behind the other, each as its length and its bytes.
// Sets are joined by joining their bytes. Of a key that occurs twice the last counts.
type KeySet []byte

// add appends a key and its value.
func (s KeySet) add(key, value string) KeySet {
	s = binary.AppendUvarint(s, uint64(len(key)))
	s = append(s, key...)
	s = binary.AppendUvarint(s, uint64(len(value)))
	return append(s, value...)
}

// index returns the keys by name; ok is false if the bytes are not a set.
func (s KeySet) index(to map[string]string) (ok bool) {
	for rest := string(s); rest != ""; {
		var key, value string
		if key, rest, ok = cutText(rest); !ok {
			return false
		}
		if value, rest, ok = cutText(rest); !ok || len(key) >= MaxKey || len(value) >= MaxValue {
			return false
		}
		to[key] = value
	}
	return true
}

// cutText cuts a text with its length before it off another.
func cutText(s string) (text, rest string, ok bool) {
	var n uint64
	for i := 0; i < len(s) && i < binary.MaxVarintLen32; i++ {
		n |= uint64(s[i]&0x7f) << (7 * i)
		if s[i] < 0x80 {
			if s = s[i+1:]; n > uint64(len(s)) {
				return "", "", false
			}
			return s[:n], s[n:], true
		}
	}
	return "", "", false
}
