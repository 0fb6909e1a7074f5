package localrpc

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"

	"golang.org/x/net/http2/hpack"
)

// frameType is the type of a frame (RFC 9113, section 6).
type frameType byte

const (
	dataFrame         frameType = 0x0
	headersFrame      frameType = 0x1
	resetFrame        frameType = 0x3
	settingsFrame     frameType = 0x4
	pingFrame         frameType = 0x6
	goAwayFrame       frameType = 0x7
	windowUpdateFrame frameType = 0x8
	continuationFrame frameType = 0x9
)

// The flags of frames.
const (
	ackFlag        = 0x1 // of settings and pings
	endStreamFlag  = 0x1 // of data and headers
	endHeadersFlag = 0x4
	paddedFlag     = 0x8
	priorityFlag   = 0x20
)

// The settings that are sent or observed.
const (
	enablePushSetting    = 0x2
	initialWindowSetting = 0x4
	maxFrameSetting      = 0x5
)

// The codes of errors that a server resets a call with, or ends a connection (RFC 9113,
// section 7).
const (
	flowControlError   = 0x3
	refusedStream      = 0x7
	cancelled          = 0x8
	enhanceYourCalm    = 0xb
	inadequateSecurity = 0xc
)

// clientPreface begins every connection.
const clientPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

const frameHeaderSize = 9

// frame is a frame of the server. Its payload is valid until the next one is read.
type frame struct {
	kind    frameType
	flags   byte
	stream  uint32
	length  int // bytes of the payload with its padding
	payload []byte
}

func (f frame) has(flag byte) bool { return f.flags&flag != 0 }

// number is the 31-bit number at the begin of the payload.
func (f frame) number() uint32 { return binary.BigEndian.Uint32(f.payload) & (1<<31 - 1) }

// appendFrame appends a frame to those that are to be written.
func appendFrame(out []byte, kind frameType, flags byte, stream uint32, payload ...byte) []byte {
	out = append(out, byte(len(payload)>>16), byte(len(payload)>>8), byte(len(payload)), byte(kind), flags)
	return append(binary.BigEndian.AppendUint32(out, stream), payload...)
}

// frameReader reads the frames of a server.
type frameReader struct {
	in     *bufio.Reader
	header [frameHeaderSize]byte
	buffer []byte
	fields *hpack.Decoder
}

func newFrameReader(in *bufio.Reader) *frameReader {
	r := &frameReader{in: in, fields: hpack.NewDecoder(4096, nil)}
	r.fields.SetMaxStringLength(maxHeaderBytes)
	return r
}

// read reads the next frame, without padding and priority.
func (r *frameReader) read() (frame, error) {
	if _, err := io.ReadFull(r.in, r.header[:]); err != nil {
		return frame{}, err
	}
	h := r.header[:]
	f := frame{kind: frameType(h[3]), flags: h[4], stream: binary.BigEndian.Uint32(h[5:]) & (1<<31 - 1),
		length: int(h[0])<<16 | int(h[1])<<8 | int(h[2])}
	if f.length > defaultMaxFrame {
		return frame{}, fmt.Errorf("a frame of %d bytes, and %d is the most", f.length, defaultMaxFrame)
	}
	if cap(r.buffer) < f.length {
		r.buffer = make([]byte, max(f.length, 512))
	}
	f.payload = r.buffer[:f.length]
	if _, err := io.ReadFull(r.in, f.payload); err != nil {
		return frame{}, err
	}
	return f, f.check()
}

// check removes padding and priority, and reports a payload that is too short.
func (f *frame) check() error {
	padding, skipped := 0, 0
	if (f.kind == dataFrame || f.kind == headersFrame) && f.has(paddedFlag) {
		if f.length < 1 {
			return f.malformed()
		}
		padding, skipped = int(f.payload[0]), 1
	}
	if f.kind == headersFrame && f.has(priorityFlag) {
		skipped += 5
	}
	if skipped+padding > f.length {
		return f.malformed()
	}
	f.payload = f.payload[skipped : f.length-padding]
	isWrong := false
	switch f.kind {
	case resetFrame, windowUpdateFrame:
		isWrong = f.length != 4
	case pingFrame:
		isWrong = f.length != 8
	case goAwayFrame:
		isWrong = f.length < 8
	case settingsFrame:
		isWrong = f.length%6 != 0
	}
	if isWrong {
		return f.malformed()
	}
	return nil
}

func (f *frame) malformed() error {
	return fmt.Errorf("a malformed frame of type %d with %d bytes", f.kind, f.length)
}

// headerFields are the fields of a block of headers.
type headerFields struct {
	values      map[string]string // the first value of each name
	isTruncated bool              // there were more than maxHeaderBytes of them
}

// readHeaders reads the rest of the block of headers that f begins.
func (r *frameReader) readHeaders(f frame) (headerFields, error) {
	list, left := headerFields{values: map[string]string{}}, maxHeaderBytes
	r.fields.SetEmitFunc(func(h hpack.HeaderField) {
		if left -= int(h.Size()); left < 0 {
			list.isTruncated = true
			return
		}
		if _, ok := list.values[h.Name]; !ok {
			list.values[h.Name] = h.Value
		}
	})
	for total, stream := 0, f.stream; ; {
		if total += len(f.payload); total > 2*maxHeaderBytes {
			return list, fmt.Errorf("headers of more than %d bytes", 2*maxHeaderBytes)
		}
		if _, err := r.fields.Write(f.payload); err != nil {
			return list, err
		}
		if f.has(endHeadersFlag) {
			return list, r.fields.Close()
		}
		var err error
		if f, err = r.read(); err != nil {
			return list, err
		}
		if f.kind != continuationFrame || f.stream != stream {
			return list, fmt.Errorf("a frame of type %d within headers", f.kind)
		}
	}
}
