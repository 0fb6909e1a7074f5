package cellqueue

import (
	"fmt"
	"os"
	"testing"

	"github.com/roost-batch/roost/internal/memorydir"
)

func TestMain(m *testing.M) {
	if text := os.Getenv(memberProcess); text != "" {
		fmt.Fprintln(os.Stderr, runMemberProcess(text))
		os.Exit(1)
	}
	memorydir.Use()
	os.Exit(m.Run())
}
