"""What commands show: tables, bars, completion."""
