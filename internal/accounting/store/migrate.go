package store

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/roost-batch/roost"
)

// schemaFiles has the steps of each schema, numbered from 001. Tables and columns are
// only added, so that a release reads what the one before wrote.
//
//go:embed schema
var schemaFiles embed.FS

// schema is one of the folders of schemaFiles.
type schema struct {
	folder  string
	version string // reads the version that a database has
	advance string // sets it to $1
}

const (
	sqliteVersion   = `PRAGMA user_version`
	postgresVersion = `SELECT coalesce(max(version), 0) FROM schema_version`
	postgresAdvance = `INSERT INTO schema_version (version) VALUES ($1)`
	postgresPrepare = `CREATE TABLE IF NOT EXISTS schema_version (version bigint NOT NULL PRIMARY KEY)`
)

func mainSchema() schema     { return schema{folder: "schema/main", version: sqliteVersion} }
func monthSchema() schema    { return schema{folder: "schema/month", version: sqliteVersion} }
func postgresSchema() schema { return schema{"schema/postgres", postgresVersion, postgresAdvance} }

// steps returns the names of the files of the schema, in order.
func (s schema) steps() ([]string, error) { return fs.Glob(schemaFiles, s.folder+"/*.sql") }

// migrate brings a database to the newest version of its schema, each step in a
// transaction. A database that a newer release has written is refused.
func (s schema) migrate(ctx context.Context, db *sql.DB) error {
	steps, err := s.steps()
	if err != nil {
		return err
	}
	var have int
	if err := db.QueryRowContext(ctx, s.version).Scan(&have); err != nil {
		return err
	}
	if have > len(steps) {
		return fmt.Errorf("%w: its schema has version %d and this program knows %d: a newer release wrote it; "+
			"install that release, or restore an older copy", roost.Conflict, have, len(steps))
	}
	for i := have; i < len(steps); i++ {
		if err := s.step(ctx, db, steps[i], i+1); err != nil {
			return fmt.Errorf("schema step %s: %w", steps[i], err)
		}
	}
	return nil
}

func (s schema) step(ctx context.Context, db *sql.DB, file string, version int) error {
	text, err := schemaFiles.ReadFile(file)
	if err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, string(text)); err != nil {
		return err
	}
	if s.advance != "" {
		if _, err := tx.ExecContext(ctx, s.advance, version); err != nil {
			return err
		}
	}
	return tx.Commit()
}
