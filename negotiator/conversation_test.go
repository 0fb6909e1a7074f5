package negotiator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// TestWordsOfAScheddAreBounded checks that messages of a submit node beyond what the loop
// can handle wait at the submit node. That holds for long and short ones, and leaves room
// for those of others.
func TestWordsOfAScheddAreBounded(t *testing.T) {
	for name, bytes := range map[string]int{"long": 1 << 20, "short": 1} {
		synctest.Test(t, func(t *testing.T) {
			s := &grpcService{loop: newLoop("head", "head:1", newLedgerStore(func(uint64) {}), newLeadership(),
				time.Hour, slog.New(slog.DiscardHandler))}
			request := &wire.FromSchedd{Of: &wire.FromSchedd_Request{Request: &wire.RequestUpdate{Id: 1,
				Ad: strings.Repeat("x", bytes)}}}
			ctx, cancel := context.WithCancel(t.Context())
			go s.receiveMessages(ctx, func() (*wire.FromSchedd, error) {
				return request, ctx.Err()
			}, "s", newSendQueue())
			for range 100 {
				synctest.Wait()
				n := len(s.loop.inbox)
				if n == 0 || n*bytes > conversationBytes || n > inboxSize/maxSchedds*2 {
					t.Fatalf("%s: %d messages wait", name, n)
				}
				(<-s.loop.inbox)(time.Now())
			}
			cancel()
		})
	}
}

// TestRequestsAreBounded checks that one submit node cannot fill the leader's memory. It
// tries ads of its requests, and ever new names.
func TestRequestsAreBounded(t *testing.T) {
	now := time.Unix(1000, 0)
	c := commitLeader(t, now, newInventory(), newLedgerStore(func(uint64) {}))
	mail := newSendQueue()
	if err := c.addStream(now, &wire.ScheddHello{Name: "s"}, mail); err != nil {
		t.Fatal(err)
	}
	ad := "[" + strings.Repeat(" ", roost.MaxAdBytes-2) + "]"
	tell := func(id uint64, wanted uint32) error {
		return c.handleMessage(now, "s", mail,
			&wire.FromSchedd{Of: &wire.FromSchedd_Request{Request: &wire.RequestUpdate{Id: id, Owner: "ann",
				Wanted: wanted, Ad: ad}}})
	}
	const most = maxAdBytes / roost.MaxAdBytes
	for id := range uint64(most) {
		for range 2 { // the same again takes no more
			if err := tell(id, 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(tell(0, 0), tell(most, 1)); err != nil {
		t.Errorf("one in the place of another: %v", err)
	}
	if err := tell(most+1, 1); !errors.Is(err, roost.Exhausted) {
		t.Errorf("one more: got %v", err)
	}
	if err := c.addStream(now, &wire.ScheddHello{Name: "s"}, mail); err != nil || c.schedds["s"].adBytes != 0 {
		t.Errorf("anew: %v, %d bytes", err, c.schedds["s"].adBytes)
	}
	for i := range maxSchedds {
		if err := c.addStream(now, &wire.ScheddHello{Name: fmt.Sprintf("%d@rogue", i)}, newSendQueue()); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]error{"more@rogue": roost.Exhausted, "rogue": roost.Exhausted, "3@rogue": nil,
		"other": nil} {
		if err := c.addStream(now, &wire.ScheddHello{Name: name}, newSendQueue()); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
	}
}
