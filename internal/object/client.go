package object

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/roost-batch/roost"
)

// Address is a presigned URL.
type Address struct {
	URL   string
	Plain bool // it may be one without TLS
}

// AddressSource returns an address for the next request of a transfer. It is asked before
// each request, because addresses are good for a short time.
type AddressSource func(ctx context.Context) (Address, error)

// How long an object store may be silent, and how often a request is tried that gets no
// data through.
const (
	headerTimeout = 30 * time.Second
	stallTimeout  = time.Minute
	maxTries      = 8
	minRetry      = 100 * time.Millisecond
	maxRetry      = 10 * time.Second
	maxErrorBody  = 64 << 10
)

// Client makes requests. All transfers of a machine share one.
type Client struct {
	http    *http.Client
	backoff *Backoff
}

// NewClient returns a client that follows no redirection. It reaches no address of the
// link: on machines of a cloud the keys of the machine are at one.
func NewClient() *Client {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second, Control: refuseLinkLocal}
	return &Client{backoff: NewBackoff(), http: &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, TLSHandshakeTimeout: 10 * time.Second,
			ResponseHeaderTimeout: headerTimeout, MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute,
			DisableCompression: true, // a range is one of the object as it is
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// refuseLinkLocal refuses a connection to an address of the link.
func refuseLinkLocal(_, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	host, _, _ = strings.Cut(host, "%")
	if ip := net.ParseIP(host); ip != nil && (ip.IsLinkLocalUnicast() || ip.IsUnspecified()) {
		return fmt.Errorf("%w: %s is an address of the link, where no object store is", roost.PermissionDenied, host)
	}
	return nil
}

// Waits says why requests to an endpoint wait; empty: they do not.
func (c *Client) Waits(endpoint string) string {
	if left := c.backoff.Remaining(endpoint); left > 0 {
		return fmt.Sprintf("the object store %s asks for fewer requests", endpoint)
	}
	return ""
}

// check returns the host of an address that may be used.
func (a Address) check() (host string, err error) {
	u, err := url.Parse(a.URL)
	switch {
	case err != nil || u.Host == "" || u.User != nil:
		return "", fmt.Errorf("%w: the address of the object is no URL", roost.Invalid)
	case u.Scheme == "https" || u.Scheme == "http" && a.Plain:
		return u.Host, nil
	}
	return u.Host, fmt.Errorf("%w: the address of the object at %s is not one of https", roost.Invalid, u.Host)
}

// do makes one request, and returns the answer if its status is one of those wanted.
func (c *Client) do(ctx context.Context, method string, from AddressSource, header http.Header, body io.Reader,
	size int64, wanted ...int) (*http.Response, error) {
	at, err := from(ctx)
	if err != nil {
		return nil, err
	}
	host, err := at.check()
	if err != nil {
		return nil, err
	}
	if c.backoff.Remaining(host) > 0 {
		if err := c.backoff.Wait(ctx, host); err != nil {
			return nil, err
		}
		if at, err = from(ctx); err != nil { // the wait may have been long
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, at.URL, body)
	if err != nil {
		return nil, fmt.Errorf("%w: the address of the object is no URL", roost.Invalid)
	}
	req.Header, req.ContentLength = header, size
	reply, err := c.http.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, networkError(err)
	}
	for _, status := range wanted {
		if reply.StatusCode == status {
			c.backoff.Good(host)
			return reply, nil
		}
	}
	defer reply.Body.Close()
	refused := readError(reply)
	if refused.IsSlowDown() {
		c.backoff.Slow(host)
	}
	return nil, refused
}

// readError reads the answer of an object store that refuses.
func readError(reply *http.Response) *StoreError {
	e := &StoreError{Status: reply.StatusCode}
	data, _ := io.ReadAll(io.LimitReader(reply.Body, maxErrorBody))
	var body struct{ Code, Message string }
	if err := xml.NewDecoder(bytes.NewReader(data)).Decode(&body); err == nil {
		e.Code, e.Text = ShortText(body.Code), ShortText(body.Message)
	}
	return e
}

// retry repeats a request until it is done, is refused for good, or has not moved
// anything in maxTries tries. Waits of a Backoff do not count.
func retry(ctx context.Context, try func() (moved bool, err error)) error {
	refused := false
	for tries, wait := 0, minRetry; ; {
		moved, err := try()
		if err == nil || ctx.Err() != nil {
			return err
		}
		if moved {
			tries, wait, refused = 0, minRetry, false
		}
		answer, ok := errors.AsType[*StoreError](err)
		switch {
		case ok && answer.isExpired() && !refused:
			refused = true // the address may have become too old on its way
		case !errors.Is(err, roost.Unavailable):
			return err
		case ok && answer.IsSlowDown():
			tries--
		}
		if tries++; tries >= maxTries {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		wait = min(2*wait, maxRetry)
	}
}
