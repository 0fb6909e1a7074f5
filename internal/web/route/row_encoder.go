package route

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"io"
	"net/http"
)

// pieceBytes is from what size on rows are sent as they are made. A shorter answer has
// its length and an ETag.
const pieceBytes = 256 << 10

// writeRows answers with the rows of a view as CSV or JSON Lines.
func (c *Call) writeRows(data any) error {
	rows, err := rowListOf(data, c.Route.Rows)
	if err != nil {
		return err
	}
	kind := c.mediaType
	if kind == typeCSV {
		kind += "; charset=utf-8; header=present"
	}
	var piece bytes.Buffer
	e := newRowEncoder(c.mediaType, rows, &piece)
	if err := e.fill(); err != nil {
		return err
	}
	if e.isDone() {
		return c.WriteText(http.StatusOK, kind, piece.Bytes())
	}
	isGzip := acceptsGzip(c.Request)
	return c.Stream(func() {
		h := c.Writer.Header()
		h.Set("Content-Type", kind)
		h.Add("Vary", "Accept-Encoding")
		if isGzip {
			h.Set("Content-Encoding", "gzip")
		}
	}, func(write func([]byte) error) error {
		if isGzip {
			return e.sendCompressed(write)
		}
		return e.send(writerFunc(write))
	})
}

// writerFunc is a function as an io.Writer.
type writerFunc func([]byte) error

// Write writes all of b, or fails.
func (f writerFunc) Write(b []byte) (int, error) {
	if err := f(b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// rowEncoder writes rows into a buffer, from which they are sent in pieces.
type rowEncoder struct {
	rows  rowList
	next  int
	piece *bytes.Buffer
	csv   *csv.Writer // nil: JSON Lines
}

func newRowEncoder(mediaType string, rows rowList, piece *bytes.Buffer) *rowEncoder {
	e := &rowEncoder{rows: rows, piece: piece}
	if mediaType != typeCSV {
		return e
	}
	e.csv = csv.NewWriter(piece)
	e.csv.Write(rows.heads()) // to memory, as all rows
	return e
}

func (e *rowEncoder) isDone() bool { return e.next == e.rows.len() }

// fill adds rows to the piece until it is large enough to be sent, or all are there.
func (e *rowEncoder) fill() error {
	for !e.isDone() && e.piece.Len() < pieceBytes {
		if err := e.addRow(e.next); err != nil {
			return err
		}
		e.next++
	}
	if e.csv != nil {
		e.csv.Flush()
	}
	return nil
}

// addRow adds a row to the piece.
func (e *rowEncoder) addRow(i int) error {
	if e.csv != nil {
		cells, err := e.rows.cells(i)
		if err == nil {
			err = e.csv.Write(cells)
		}
		return err
	}
	text, err := e.rows.text(i)
	if err == nil {
		e.piece.Write(append(text, '\n'))
	}
	return err
}

// send sends the piece and all rows after it.
func (e *rowEncoder) send(to io.Writer) error {
	for {
		if _, err := to.Write(e.piece.Bytes()); err != nil || e.isDone() {
			return err
		}
		e.piece.Reset()
		if err := e.fill(); err != nil {
			return err
		}
	}
}

func (e *rowEncoder) sendCompressed(write func([]byte) error) error {
	z, err := gzip.NewWriterLevel(writerFunc(write), 5)
	if err == nil {
		err = e.send(z)
	}
	if err == nil {
		err = z.Close()
	}
	return err
}
