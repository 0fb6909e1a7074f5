package probe

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"

	"github.com/roost-batch/roost"
)

// NoPortError is the error for a port that a task does not have.
func NoPortError(name string) error {
	return fmt.Errorf("%w: the task has no port %q", roost.NotFound, name)
}

// Post sends a POST to a path on a port of a task, and waits for the answer. It follows
// no redirect, and reads no more than 16 KiB.
func Post(ctx context.Context, to netip.AddrPort, path string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+to.String()+path, nil)
	if err != nil {
		return err
	}
	request.Header.Set("User-Agent", "roost-stop")
	transport := &http.Transport{DisableKeepAlives: true, Proxy: nil, MaxResponseHeaderBytes: maxBody,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, to.String())
		}}
	defer transport.CloseIdleConnections()
	client := http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	io.CopyN(io.Discard, answer.Body, maxBody)
	if answer.StatusCode >= 400 {
		return fmt.Errorf("POST %s: %w: %s", path, roost.Unavailable, printable(answer.Status))
	}
	return nil
}
