package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
)

func TestCheckpointServerAnswer(t *testing.T) {
	expect(t, "well", answerFinding("c1:9704", nil), levelOK, "answers at c1:9704")
	expect(t, "gone", answerFinding("c1:9704", fmt.Errorf("%w: nobody there", roost.Unavailable)), levelError,
		"c1:9704: ")
	expect(t, "no right", answerFinding("unix:/s", fmt.Errorf("%w: not you", roost.PermissionDenied)), levelWarning,
		"not you")
}

func TestCheckpointServerRoom(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "blob"), make([]byte, 97_000), 0o600); err != nil {
		t.Fatal(err)
	}
	for most, c := range map[roost.Bytes]struct {
		level checkLevel
		text  string
	}{0: {levelOK, " in " + dir}, 200_000: {levelOK, " of at most "}, 100_000: {levelWarning, " of at most "}} {
		f, ok := checkImageRoom(&config.CheckpointServerSettings{Dir: dir, Max: most})
		if !ok {
			t.Fatalf("max_size %d: nothing was found", most)
		}
		expect(t, fmt.Sprint(most), f, c.level, c.text)
	}
	f, ok := checkImageRoom(&config.CheckpointServerSettings{Dir: filepath.Join(dir, "none")})
	if !ok || f.Level != levelWarning || !strings.Contains(f.Hint, "checkpoint-server.log") {
		t.Errorf("without a directory: %+v, %v", f, ok)
	}
}
