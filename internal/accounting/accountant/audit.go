package accountant

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting/query"
)

// auditLog has a line for each change of the accounts, and only grows.
type auditLog struct{ file *os.File }

// AuditFile is the name of the file in the accountant's directory.
const AuditFile = "audit.log"

func openAudit(dir string) (*auditLog, error) {
	f, err := os.OpenFile(filepath.Join(dir, AuditFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("log of changes: %w: %w", roost.NoOutput, err)
	}
	return &auditLog{f}, nil
}

// write adds who changed what, and what came of it.
func (l *auditLog) write(who string, c *query.Change, err error) error {
	result := "done"
	if err != nil {
		result = err.Error()
	}
	slog.New(slog.NewJSONHandler(l.file, nil)).Info("change", "who", who, "what", c.What(), "change", c, "result",
		result)
	return l.file.Sync()
}
