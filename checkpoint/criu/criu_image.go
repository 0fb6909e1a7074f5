package criu

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/checkpoint/image"
)

// maxEntries bounds the size of a file of entries in bytes. Files with memory or data are
// not read.
const maxEntries = 256 << 20

// CRIU's files of entries begin with one or two magic numbers. The first of two is this
// one, or the one of files that services use.
const (
	imageMagic   = 0x54564319
	serviceMagic = 0x55105940
)

// badImageError returns the error of an image that must not be restored.
func badImageError(format string, args ...any) error {
	return fmt.Errorf("its checkpoint is not one that such a task can leave: %w: "+format,
		append([]any{roost.Invalid}, args...)...)
}

// forgedError is the error of an image that no honest machine makes, with any programs,
// users and release. Its maker is suspected.
type forgedError struct{ error }

func (e forgedError) Unwrap() error { return e.error }

func newForgedError(format string, args ...any) error {
	return forgedError{badImageError(format, args...)}
}

// readEntries reads one of CRIU's files, whose entries all have one type. It accepts only
// the one encoding that CRIU writes, without unknown fields, so that what is checked is
// what CRIU will read. A missing file has no entries.
func readEntries[M proto.Message](dir, name string, newEntry func() M) (all []M, err error) {
	return decodeEntries(dir, name, newEntry, false)
}

func decodeEntries[M proto.Message](dir, name string, newEntry func() M, lenient bool) (all []M, err error) {
	path := filepath.Join(dir, image.CRIUDir, name)
	info, err := os.Stat(path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err == nil && info.Size() > maxEntries {
		return nil, badImageError("%s has %d bytes", name, info.Size())
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(data) < 4 {
		return nil, badImageError("%s is cut short", name)
	}
	rest := data[magicSize(data):]
	for len(rest) > 0 {
		if len(rest) < 4 || uint64(binary.LittleEndian.Uint32(rest)) > uint64(len(rest)-4) {
			return nil, badImageError("%s is cut short", name)
		}
		size := int(binary.LittleEndian.Uint32(rest))
		text := rest[4 : 4+size]
		rest = rest[4+size:]
		if all, err = decodeText(all, name, text, newEntry, lenient); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// magicSize returns the length in bytes of the magic numbers with which a file of entries
// begins. It has four bytes at least.
func magicSize(data []byte) int {
	if first := binary.LittleEndian.Uint32(data); first == imageMagic || first == serviceMagic {
		return min(8, len(data))
	}
	return 4
}

// rewriteEntries replaces the entries of a file that readEntries has read.
func rewriteEntries[M proto.Message](path string, all []M) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	data = data[:magicSize(data)]
	for _, m := range all {
		text, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			return err
		}
		data = append(binary.LittleEndian.AppendUint32(data, uint32(len(text))), text...)
	}
	return os.WriteFile(path, data, 0o600)
}

// decodeText decodes an entry and appends it to all.
func decodeText[M proto.Message](all []M, name string, text []byte, newEntry func() M, lenient bool) ([]M, error) {
	m := newEntry()
	if err := proto.Unmarshal(text, m); err != nil {
		return nil, badImageError("%s: %v", name, err)
	}
	again, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil || !bytes.Equal(again, text) {
		return nil, badImageError("%s has an entry that CRIU does not write so", name)
	}
	if field := unknownField(m.ProtoReflect()); field != "" && !lenient {
		return nil, badImageError("%s has a field that is not known here, in %s", name, field)
	}
	return append(all, m), nil
}

// firstEntry reads the first entry of a file that contains data after it.
func firstEntry[M proto.Message](dir, name string, newEntry func() M) (m M, err error) {
	f, err := os.Open(filepath.Join(dir, image.CRIUDir, name))
	if err != nil {
		return m, badImageError("%s: %v", name, err)
	}
	defer f.Close()
	start := make([]byte, 12)
	if _, err := io.ReadFull(f, start); err != nil {
		return m, badImageError("%s is cut short", name)
	}
	size := binary.LittleEndian.Uint32(start[8:])
	if binary.LittleEndian.Uint32(start) != imageMagic || size > 64<<10 {
		return m, badImageError("%s does not begin as one", name)
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(f, text); err != nil {
		return m, badImageError("%s is cut short", name)
	}
	all, err := decodeText(nil, name, text, newEntry, false)
	if err != nil {
		return m, err
	}
	return all[0], nil
}

// readEntry reads a file of exactly one entry.
func readEntry[M proto.Message](dir, name string, newEntry func() M) (m M, err error) {
	all, err := readEntries(dir, name, newEntry)
	if err == nil && len(all) != 1 {
		err = badImageError("%s has %d entries", name, len(all))
	}
	if err != nil {
		return m, err
	}
	return all[0], nil
}

// newerFields returns fields that CRIU writes and that the message types here do not have
// yet, by message name. nil means that the message may have any. Other code checks their
// values.
func newerFields() map[protoreflect.FullName]map[protowire.Number]bool {
	return map[protoreflect.FullName]map[protowire.Number]bool{
		// no_new_privs and ambient capabilities, which are checked in the restored
		// process
		"creds_entry":          {18: true, 19: true},
		"inet_sk_entry":        {20: true}, // options of a socket
		"ip_opts_entry":        {6: true, 7: true},
		"file_entry":           {22: true}, // of a pidfd
		"user_x86_xsave_entry": nil,        // registers of newer processors
	}
}

// unknownField finds an unknown field in a message or below it, and returns the name of
// the message with it.
func unknownField(m protoreflect.Message) (name string) {
	known, some := newerFields()[m.Descriptor().FullName()]
	if some && known == nil {
		return ""
	}
	for rest := m.GetUnknown(); len(rest) > 0; {
		number, _, n := protowire.ConsumeField(rest)
		if n < 0 || !known[number] {
			return fmt.Sprintf("%s (%d)", m.Descriptor().FullName(), number)
		}
		rest = rest[n:]
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				if name == "" {
					name = unknownField(v.List().Get(i).Message())
				}
			}
		case !f.IsMap() && name == "":
			name = unknownField(v.Message())
		}
		return name == ""
	})
	return name
}
