"""The machines that Phobos generates code for."""
