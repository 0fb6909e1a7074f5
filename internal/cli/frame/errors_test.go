package frame

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestNoCommandIsNamedTwice: a wrong call is told under the command's name, which the
// error may begin with, too.
func TestNoCommandIsNamedTwice(t *testing.T) {
	var stderr strings.Builder
	a := NewApp(nil, io.Discard, &stderr, nil, nil)
	a.printError("join", fmt.Errorf("join: %w", UsageErrorf("%q: write it as HOST:PORT", "x")))
	if got, want := stderr.String(), "roost join: \"x\": write it as HOST:PORT\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestCertificateIsRefused: what TLS says of a certificate is told in words that say what
// to do.
func TestCertificateIsRefused(t *testing.T) {
	var stderr strings.Builder
	a := NewApp(nil, io.Discard, &stderr, nil, nil)
	a.printError("nodes", status.Error(codes.Unavailable,
		`connection error: desc = "error reading server preface: remote error: tls: bad certificate"`))
	if got, want := stderr.String(), "roost: this node's certificate is refused, which was revoked or has ended: "+
		NewCertificate+"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
