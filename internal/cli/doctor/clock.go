package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/nodeaccess"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

const (
	clockCheck = "clock"
	// how far clocks may differ without a word
	clockTolerance = 2 * time.Second
	// how far they may differ before certificates and credentials are refused
	clockLimit = time.Minute
	// the largest difference that is measured
	maxClockDifference = 1 << 32 * time.Second
	clockCure          = "set the clocks of both by NTP; see here and there: timedatectl, chronyc tracking. Until " +
		"then runs of cron and start_after begin at the wrong time, times in logs and statements do not fit, and " +
		"new certificates and passes may be refused"
)

// clockProbe asks a collector whether a condition is true there, such as "time() >= 5".
type clockProbe func(condition string) (bool, error)

// clockDifference is how far a collector's clock is ahead of this machine's. The true
// difference is between the two.
type clockDifference struct{ least, most time.Duration }

// measureClock measures a collector's clock. It halves the range of possible differences
// until it is narrow enough for a verdict. Collectors count whole seconds, and the time
// that an answer takes widens the range, so that a slow network is not taken for a wrong
// clock.
func measureClock(ask clockProbe) (d clockDifference, err error) {
	d = clockDifference{-maxClockDifference, maxClockDifference}
	// the usual case first, in two questions; then the size of the difference
	guesses := []time.Duration{-clockTolerance, clockTolerance + time.Second}
	for range 80 {
		guess := d.least + (d.most-d.least)/2
		switch {
		case len(guesses) > 0:
			guess, guesses = guesses[0], guesses[1:]
		case d.least >= -clockTolerance-time.Second && d.most <= clockTolerance+2*time.Second,
			d.most-d.least <= 2*time.Second:
			return d, nil
		case d.least > 0: // differences are seconds more often than years
			guess = min(guess, 2*d.least)
		case d.most < 0:
			guess = max(guess, 2*d.most)
		}
		sent := time.Now()
		asked := sent.Add(guess).Truncate(time.Second)
		reached, err := ask(fmt.Sprintf("time() >= %d", asked.Unix()))
		if err != nil {
			return d, err
		}
		least, most := d.least, d.most
		if reached {
			d.least = max(d.least, time.Until(asked))
		} else {
			d.most = min(d.most, asked.Sub(sent))
		}
		if d.least > d.most { // one of the clocks was set meanwhile
			return clockDifference{d.most, d.least}, nil
		}
		if least == d.least && most == d.most && len(guesses) == 0 {
			return d, nil // an answer takes longer than the range is wide
		}
	}
	return d, nil
}

// finding judges a difference.
func (d clockDifference) finding(addr string) checkResult {
	by, how := d.least, "behind"
	if d.most < 0 {
		by, how = -d.most, "ahead of"
	}
	if by <= clockTolerance {
		return checkResult{clockCheck, levelOK, "fits that of the collector at " + addr, ""}
	}
	level := levelWarning
	if by > clockLimit {
		level = levelError
	}
	return checkResult{clockCheck, level, fmt.Sprintf("this machine is at least %s %s the collector at %s",
		document.SpanText(by.Round(time.Second)), how, addr), clockCure}
}

// examineClock compares this machine's clock with that of a collector on another host.
func examineClock(addr string, ask clockProbe) []checkResult {
	if isOwnAddress(addr) {
		return nil
	}
	if some, err := ask("time() >= 0"); err != nil || !some {
		return nil // other checks report that it does not answer
	}
	d, err := measureClock(ask)
	if err != nil {
		return nil
	}
	return []checkResult{d.finding(addr)}
}

// scheddClockProbe asks the collector that the schedd uses.
func scheddClockProbe(c *frame.Invocation) clockProbe {
	return func(condition string) (bool, error) {
		ads, err := c.QueryAds(&scheddapi.AdQuery{Type: "Collector", Constraint: condition, Limit: 1})
		return len(ads) > 0, err
	}
}

// collectorClockProbe asks a collector itself, with the certificate of this node.
func collectorClockProbe(c *frame.Invocation, addr string, id *rpc.Identity) (ask clockProbe, done func(), err error) {
	conn, err := rpc.Dial(addr, id, peer.Collector)
	if err != nil {
		return nil, nil, err
	}
	return func(condition string) (bool, error) {
		ctx, cancel := context.WithTimeout(c.Context, nodeaccess.CellTimeout)
		defer cancel()
		stream, err := wire.NewCollectorClient(conn).Query(ctx, &scheddapi.AdQuery{Type: "Collector",
			Constraint: condition, Limit: 1})
		if err == nil {
			_, err = stream.Recv()
		}
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		return err == nil, err
	}, func() { conn.Close() }, nil
}

// isOwnAddress reports whether an address, as host:port or a path, is of this machine.
func isOwnAddress(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil || strings.Contains(addr, "/") || host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	if ip.IsLoopback() {
		return true
	}
	own, _ := net.InterfaceAddrs()
	for _, a := range own {
		if n, ok := a.(*net.IPNet); ok && ip != nil && n.IP.Equal(ip) {
			return true
		}
	}
	return false
}
