package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/lazyregexp"
)

const (
	// ChunkBytes is the size of each chunk of a blob but the last.
	ChunkBytes = 4 << 20

	// MaxBlobBytes is the most bytes of a blob.
	MaxBlobBytes = 256 << 30
)

// Digest names a blob: "sha256:" and 64 hexadecimal digits. It is the SHA-256 of the
// SHA-256 sums of the blob's chunks, in their order.
type Digest string

const digestPrefix = "sha256:"

var digestForm = lazyregexp.New(`^sha256:[0-9a-f]{64}$`)

// ParseDigest returns the digest in a text. Another text is roost.Invalid.
func ParseDigest(text string) (Digest, error) {
	if d := Digest(text); d.Valid() {
		return d, nil
	}
	return "", fmt.Errorf("digest %.80q: %w: it must be \"sha256:\" and 64 hexadecimal digits", text, roost.Invalid)
}

// Valid reports whether the digest has the form of one.
func (d Digest) Valid() bool { return digestForm().MatchString(string(d)) }

// hex returns the digits. They are the name of the blob's file.
func (d Digest) hex() string { return strings.TrimPrefix(string(d), digestPrefix) }

// Short returns the first digits, for messages.
func (d Digest) Short() string { return fmt.Sprintf("%.12s", d.hex()) }

// Manifest lists the SHA-256 sums of a blob's chunks. All chunks but the last have
// ChunkBytes bytes.
type Manifest struct {
	Size   int64 // bytes of the blob
	Chunks [][sha256.Size]byte
}

// Digest returns the name of the blob.
func (m Manifest) Digest() Digest {
	h := sha256.New()
	for _, c := range m.Chunks {
		h.Write(c[:])
	}
	return Digest(digestPrefix + hex.EncodeToString(h.Sum(nil)))
}

// ChunkSize returns the bytes of chunk i.
func (m Manifest) ChunkSize(i int) int {
	return int(min(ChunkBytes, m.Size-int64(i)*ChunkBytes))
}

// Check returns why a manifest cannot be that of a blob.
func (m Manifest) Check() error {
	switch {
	case m.Size < 0 || m.Size > MaxBlobBytes:
		return fmt.Errorf("manifest: %w: the blob has %d bytes, and %v is the most", roost.Invalid, m.Size,
			roost.Bytes(MaxBlobBytes))
	case int64(len(m.Chunks)) != (m.Size+ChunkBytes-1)/ChunkBytes:
		return fmt.Errorf("manifest: %w: %d chunks for %d bytes", roost.Invalid, len(m.Chunks), m.Size)
	}
	return nil
}

// manifestHeader begins an encoded manifest. The size, the sums and a CRC-32C follow.
const manifestHeader = "roost manifest 1\n"

// MaxManifestBytes is the most bytes of an encoded manifest.
const MaxManifestBytes = len(manifestHeader) + 8 + MaxBlobBytes/ChunkBytes*sha256.Size + 4

// Encode returns the manifest as it is stored and sent: 64 KiB for 8 GiB.
func (m Manifest) Encode() []byte {
	b := make([]byte, 0, len(manifestHeader)+8+len(m.Chunks)*sha256.Size+4)
	b = append(b, manifestHeader...)
	b = binary.BigEndian.AppendUint64(b, uint64(m.Size))
	for _, c := range m.Chunks {
		b = append(b, c[:]...)
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

// DecodeManifest reads an encoded manifest. A damaged one is roost.Invalid.
func DecodeManifest(b []byte) (m Manifest, err error) {
	rest, ok := bytes.CutPrefix(b, []byte(manifestHeader))
	if !ok || len(rest) < 12 || (len(rest)-12)%sha256.Size != 0 {
		return m, fmt.Errorf("manifest: %w: it has another form", roost.Invalid)
	}
	sum := binary.BigEndian.Uint32(b[len(b)-4:])
	if sum != crc32.Checksum(b[:len(b)-4], crc32.MakeTable(crc32.Castagnoli)) {
		return m, fmt.Errorf("manifest: %w: its checksum is wrong", roost.Invalid)
	}
	m.Size = int64(binary.BigEndian.Uint64(rest))
	m.Chunks = make([][sha256.Size]byte, (len(rest)-12)/sha256.Size)
	for i := range m.Chunks {
		copy(m.Chunks[i][:], rest[8+i*sha256.Size:])
	}
	return m, m.Check()
}
