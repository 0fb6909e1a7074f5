package codes

import (
	"testing"

	"google.golang.org/grpc/codes"
)

// TestLikeGRPC compares the names of all codes, and of some that do not exist, with
// gRPC's.
func TestLikeGRPC(t *testing.T) {
	for i := range uint32(20) {
		if got, want := Code(i).String(), codes.Code(i).String(); got != want {
			t.Errorf("%d: got %s, want %s", i, got, want)
		}
	}
	if got, want := Code(Unauthenticated).String(), codes.Unauthenticated.String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
