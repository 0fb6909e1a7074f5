package rpc

import (
	"os"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
)

// TestManualListsLimits compares the numbers in roost-security(7) with the constants.
func TestManualListsLimits(t *testing.T) {
	page, err := os.ReadFile("../../man/roost-security.7")
	if err != nil {
		t.Fatal(err)
	}
	bytes := func(n int) string { return strings.ReplaceAll(roost.Bytes(n).String(), " ", "") }
	for _, want := range []string{
		".B " + handshakeTimeout.String() + "\nfor a handshake",
		".B 1024 handshakes", ".B 128\nof one address", ".B 1024 connections", ".B 1024 calls",
		".B " + maxIdle.String() + "\nwithout a call",
		".B " + pingTimeout.String() + "\nafter\n.B " + pingInterval.String(),
		".B " + nodePingTimeout.String() + "\nafter\n.B " + nodePingInterval.String(),
		".B " + bytes(maxHeaders) + "\nof header", ".B " + requestTimeout.String() + "\nfor a request",
		".B " + nodeSendTimeout.String() + "\nfor a node", ".B " + userSendTimeout.String() + "\nfor a user",
		".B " + bytes(streamWindow) + "\nunder way", ".B " + bytes(maxMessageSize) + "\nof one submission",
		".B " + bytes(maxIntakePerPeer) + "\nof requests", ".B " + bytes(maxIntake) + "\nof all", ".B 128\nmay be such",
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if maxHandshakes != 1024 || maxHandshakesPerAddr != 128 || maxConnsPerPeer != 1024 || maxCallsPerPeer != 1024 ||
		maxUploadsPerUser != 128 || maxStreams != 1024 || programMessageSize != 32<<20 ||
		sessionMessageSize != 32<<20 ||
		ordinaryMessageSize != 4<<20 || smallMessageSize != 64<<10 || maxLogBurst != 500 || logRate != 5 ||
		logRepeatInterval.Minutes() != 1 {
		t.Errorf("a bound has changed: say so in roost-security(7), and here")
	}
}
