// Reads one statement with the published Go client and prints its rows, a line each.
//
//	stream-rows http://user@host:port?catalog=tpch&schema=tiny 'SELECT …'
package main

import (
	"bufio"
	"database/sql"
	"fmt"
	"os"

	_ "github.com/trinodb/trino-go-client/trino"
)

func run(dsn, statement string) error {
	db, err := sql.Open("trino", dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	rows, err := db.Query(statement)
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	values := make([]any, len(columns))
	places := make([]any, len(columns))
	for i := range values {
		places[i] = &values[i]
	}
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for rows.Next() {
		if err := rows.Scan(places...); err != nil {
			return err
		}
		for i, value := range values {
			if i > 0 {
				out.WriteByte(',')
			}
			fmt.Fprint(out, value)
		}
		out.WriteByte('\n')
	}
	return rows.Err()
}

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
