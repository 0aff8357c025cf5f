// test lower
// error: the package `Other` is not one of an architecture that is known
control c();
package Other(c one);
control mine() { apply {} }
Other(mine()) main;
