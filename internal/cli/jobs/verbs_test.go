package jobs

import (
	"slices"
	"strings"
	"testing"
)

// TestSelectorsByHost holds that selectors go to the node that each names, in order.
func TestSelectorsByHost(t *testing.T) {
	hosts, of := selectorsByHost(strings.Fields("1 2.n2 3.n3 4 5.n2"))
	if !slices.Equal(hosts, []string{"", "n2", "n3"}) || !slices.Equal(of["n2"], []string{"2.n2", "5.n2"}) ||
		!slices.Equal(of[""], []string{"1", "4"}) {
		t.Errorf("got %q, %q", hosts, of)
	}
}
