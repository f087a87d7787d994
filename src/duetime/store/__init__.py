"""Where state is kept between records."""
