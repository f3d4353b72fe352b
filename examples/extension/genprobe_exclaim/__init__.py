"""Does a reply exclaim? A judge, a metric and a pack of questions for genprobe."""
