package object

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
)

// Reader reads one object from its begin to its end. After a connection that was cut off
// it goes on where it was. It is not safe for concurrent use.
type Reader struct {
	ctx    context.Context
	client *Client
	from   AddressSource
	object Info
	at     int64 // the next byte
	body   io.ReadCloser
	stall  *time.Timer // of the present body
	cancel context.CancelFunc
}

// Open returns a reader of an object with that size and that ETag. Another object under
// its key is a *StoreError of roost.Conflict.
func (c *Client) Open(ctx context.Context, o Info, from AddressSource) *Reader {
	return &Reader{ctx: ctx, client: c, from: from, object: o}
}

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (n int, err error) {
	if r.at >= r.object.Size {
		return 0, io.EOF
	}
	if len(p) == 0 {
		return 0, nil
	}
	err = retry(r.ctx, func() (bool, error) {
		n, err = r.readOnce(p)
		return n > 0, err
	})
	return n, err
}

// readOnce reads some bytes, over a new connection if there is none.
func (r *Reader) readOnce(p []byte) (n int, err error) {
	if r.body == nil {
		if err := r.openBody(); err != nil {
			return 0, err
		}
	}
	r.stall.Reset(stallTimeout)
	n, err = r.body.Read(p[:min(int64(len(p)), r.object.Size-r.at)])
	r.at += int64(n)
	if n > 0 {
		if r.at == r.object.Size {
			r.closeBody()
		}
		return n, nil
	}
	r.closeBody()
	switch {
	case r.ctx.Err() != nil:
		return 0, context.Cause(r.ctx)
	case err == nil:
		return 0, nil
	case errors.Is(err, io.EOF):
		return 0, &StoreError{Text: fmt.Sprintf("the answer ended after %d of %d bytes", r.at, r.object.Size)}
	}
	return 0, networkError(err)
}

// openBody asks for the rest of the object.
func (r *Reader) openBody() error {
	header := http.Header{}
	if r.object.ETag != "" {
		header.Set("If-Match", `"`+r.object.ETag+`"`)
	}
	if r.at > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", r.at))
	}
	ctx, cancel := context.WithCancel(r.ctx)
	reply, err := r.client.do(ctx, http.MethodGet, r.from, header, nil, 0, http.StatusOK, http.StatusPartialContent)
	if err == nil {
		if err = r.checkReply(reply); err != nil {
			reply.Body.Close()
		}
	}
	if err != nil {
		cancel()
		return err
	}
	r.body, r.cancel, r.stall = reply.Body, cancel, time.AfterFunc(stallTimeout, cancel)
	return nil
}

// checkReply compares an answer with what was asked for. Some servers know no conditions,
// and some no ranges.
func (r *Reader) checkReply(reply *http.Response) error {
	tag := strings.Trim(strings.TrimPrefix(reply.Header.Get("ETag"), "W/"), `"`)
	if r.object.ETag != "" && tag != "" && tag != r.object.ETag {
		return &StoreError{Status: http.StatusPreconditionFailed, Text: "another object is there by now"}
	}
	want := r.object.Size - r.at
	if r.at > 0 {
		begin, _, _ := strings.Cut(strings.TrimPrefix(reply.Header.Get("Content-Range"), "bytes "), "-")
		if at, err := strconv.ParseInt(begin, 10, 64); reply.StatusCode != http.StatusPartialContent || err != nil ||
			at != r.at {
			return fmt.Errorf("%w: the object store sends no part of an object", roost.Invalid)
		}
	}
	if reply.ContentLength >= 0 && reply.ContentLength != want {
		return &StoreError{Status: http.StatusPreconditionFailed, Text: fmt.Sprintf(
			"%d bytes were to come, and %d would", want, reply.ContentLength)}
	}
	return nil
}

func (r *Reader) closeBody() {
	if r.body != nil {
		r.stall.Stop()
		r.body.Close()
		r.cancel()
		r.body = nil
	}
}

// Close ends the transfer.
func (r *Reader) Close() { r.closeBody() }
