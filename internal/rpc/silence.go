package rpc

import (
	"strings"
	"time"

	"github.com/roost-batch/roost"
)

// SilenceBefore returns for how long the other side had been silent when a call broke
// with an error. It is 0 if that side, or its machine, has ended the connection: that was
// a word of it. gRPC tells the cases apart in words only.
func SilenceBefore(err error) time.Duration {
	if err == nil {
		return 0
	}
	switch text := err.Error(); {
	case strings.Contains(text, "keepalive ping failed to receive ACK"):
		return roost.SilentAfter
	case strings.Contains(text, "connection timed out"): // what was sent was not acknowledged (TCP_USER_TIMEOUT)
		return nodePingTimeout
	}
	return 0
}
