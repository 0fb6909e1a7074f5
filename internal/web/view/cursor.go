package view

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// Cursors seals how far a list of jobs has come. A cursor is bound to the user and the
// conditions of its list, and ends with the daemon; there are no offsets, because jobs
// that come and go would shift them.
type Cursors struct{ aead cipher.AEAD }

// NewCursors makes a new key.
func NewCursors() (*Cursors, error) {
	key := make([]byte, 16)
	rand.Read(key)
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	return &Cursors{aead}, err
}

// maxCursor bounds a cursor in an address, in characters.
const maxCursor = 8 << 10

// seal returns the cursor of the places at which each schedd's rows have ended.
func (c *Cursors) seal(places []*wire.RowPlace, list string) (string, error) {
	var text []byte
	for _, p := range places {
		text = binary.AppendUvarint(text, uint64(len(p.GetNode())))
		text = append(text, p.GetNode()...)
		text = binary.AppendUvarint(text, p.GetPlace())
	}
	nonce := make([]byte, c.aead.NonceSize())
	rand.Read(nonce)
	cursor := base64.RawURLEncoding.EncodeToString(c.aead.Seal(nonce, nonce, text, []byte(list)))
	if len(cursor) > maxCursor {
		return "", fmt.Errorf("list: %w: its jobs are at too many schedds to go on: ask for those of one with at=NODE",
			roost.Exhausted)
	}
	return cursor, nil
}

// open reads a cursor.
func (c *Cursors) open(cursor, list string) (places []*wire.RowPlace, err error) {
	bad := fmt.Errorf("after: %w: it is no cursor of this list, or one from before the web daemon was started "+
		"again: begin at the first part", roost.Invalid)
	if cursor == "" {
		return nil, nil
	}
	if len(cursor) > maxCursor {
		return nil, bad
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(sealed) < c.aead.NonceSize() {
		return nil, bad
	}
	text, err := c.aead.Open(nil, sealed[:c.aead.NonceSize()], sealed[c.aead.NonceSize():], []byte(list))
	if err != nil {
		return nil, bad
	}
	for len(text) > 0 {
		size, n := binary.Uvarint(text)
		if n <= 0 || size > uint64(len(text)-n) {
			return nil, bad
		}
		node := string(text[n : n+int(size)])
		text = text[n+int(size):]
		place, n := binary.Uvarint(text)
		if n <= 0 {
			return nil, bad
		}
		text = text[n:]
		places = append(places, &wire.RowPlace{Node: node, Place: place})
	}
	return places, nil
}

// setPlace notes the place of a row that was shown.
func setPlace(places []*wire.RowPlace, s *wire.JobStatus) []*wire.RowPlace {
	_, node, _ := strings.Cut(s.GetId(), ".")
	i := slices.IndexFunc(places, func(p *wire.RowPlace) bool { return p.GetNode() == node })
	if i < 0 {
		return append(places, &wire.RowPlace{Node: node, Place: s.GetPlace()})
	}
	places[i] = &wire.RowPlace{Node: node, Place: s.GetPlace()}
	return places
}
