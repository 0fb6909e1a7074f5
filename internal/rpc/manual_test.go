package rpc

import (
	"os"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
)

// TestManualSaysTheBounds holds the numbers in roost-security(7) against those that are used.
func TestManualSaysTheBounds(t *testing.T) {
	page, err := os.ReadFile("../../man/roost-security.7")
	if err != nil {
		t.Fatal(err)
	}
	bytes := func(n int) string { return strings.ReplaceAll(roost.Bytes(n).String(), " ", "") }
	for _, want := range []string{
		".B " + handshakeTimeout.String() + "\nfor a handshake",
		".B 1024 handshakes", ".B 128\nof one address", ".B 1024 connections", ".B 1024 calls",
		".B " + maxIdle.String() + "\nwithout a call", ".B " + pingTimeout.String() + "\nafter\n.B " + pingAfter.String(),
		".B " + bytes(maxHeaders) + "\nof header", ".B " + arriveTimeout.String() + "\nfor a request",
		".B " + slowNode.String() + "\nfor a node", ".B " + slowUser.String() + "\nfor a user", ".B " + bytes(window) + "\nunder way", ".B " + bytes(maxMessage) + "\nof one submission",
		".B " + bytes(maxHeldOf) + "\nof requests", ".B " + bytes(maxHeld) + "\nof all", ".B 128\nmay be such",
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if maxHandshakes != 1024 || maxHandshakesOf != 128 || maxConnsOf != 1024 || maxCallsOf != 1024 || maxUploadsOf != 128 || maxStreams != 1024 || program != 32<<20 || sessions != 32<<20 ||
		ordinary != 4<<20 || small != 64<<10 || maxLines != 500 || moreLines != 5 || tellAgain.Minutes() != 1 {
		t.Errorf("a bound has changed: say so in roost-security(7), and here")
	}
}
