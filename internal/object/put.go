package object

import (
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/roost-batch/roost"
)

// PartBody is the data of a part.
type PartBody struct {
	Size int64
	MD5  [md5.Size]byte // of the data, which the object store compares
	// Open returns the data; each try reads it anew
	Open func(ctx context.Context) (io.ReadCloser, error)
}

// ETag returns the ETag that most object stores give to the part.
func (b PartBody) ETag() string { return hex.EncodeToString(b.MD5[:]) }

// PutPart uploads a part, and returns its ETag.
func (c *Client) PutPart(ctx context.Context, b PartBody, from AddressSource) (etag string, err error) {
	err = retry(ctx, func() (bool, error) {
		etag, err = c.putOnce(ctx, b, from)
		return false, err
	})
	return etag, err
}

func (c *Client) putOnce(ctx context.Context, b PartBody, from AddressSource) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	data, err := b.Open(ctx)
	if err != nil {
		return "", err
	}
	defer data.Close()
	body := &stallReader{from: io.LimitReader(data, b.Size), cancel: cancel}
	header := http.Header{"Content-Md5": {base64.StdEncoding.EncodeToString(b.MD5[:])}}
	var reader io.Reader = body
	if b.Size == 0 {
		reader = nil // else the library would not say that there is none
	}
	reply, err := c.do(ctx, http.MethodPut, from, header, reader, b.Size, http.StatusOK)
	stalled, unread := body.end()
	switch {
	case err == nil:
	case unread != nil && !errors.Is(unread, context.Canceled):
		return "", unread
	case stalled:
		return "", &StoreError{Text: fmt.Sprintf("it took no data for %v", stallTimeout)}
	default:
		return "", err
	}
	defer reply.Body.Close()
	tag := strings.Trim(reply.Header.Get("ETag"), `"`)
	if tag == "" {
		return "", fmt.Errorf("%w: it answers an upload as no object store does: without an ETag", roost.Invalid)
	}
	return tag, nil
}
