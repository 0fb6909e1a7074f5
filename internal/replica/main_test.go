package replica

import (
	"os"
	"testing"

	"github.com/roost-batch/roost/internal/memorydir"
)

func TestMain(m *testing.M) {
	memorydir.Use()
	os.Exit(m.Run())
}
